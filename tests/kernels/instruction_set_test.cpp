#include "kernels/instruction_set.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "kernels/precision.hpp"

using namespace leeway;
using kernels::product_instructions;

namespace {

constexpr auto kCpu = Device::Kind::host, kGpu = Device::Kind::cuda;

}  // namespace

TEST_CASE("the instructions of products on the CPU are those that oneDNN may use", "[precision]") {
  const std::string fp32 = product_instructions(Precision::fp32, kCpu);
  CAPTURE(fp32);
  // ctest also runs this test with a limit.
  const char* const limit = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (limit && std::string(limit) == "AVX2") {
    CHECK(fp32 == "AVX2");
    CHECK_FALSE(kernels::multiplies_bf16());
  }
  CHECK(product_instructions(Precision::tf32, kCpu) == "multiplied in fp32 with " + fp32);
  CHECK(product_instructions(Precision::fp16, kCpu) == "rounded, multiplied in fp32 with " + fp32);
  const std::string bf16 = product_instructions(Precision::bf16, kCpu);
  if (kernels::multiplies_bf16())
    CHECK((bf16 == "AVX512_BF16" || bf16 == "AMX"));
  else
    CHECK(bf16 == "rounded, multiplied in fp32 with " + fp32 + " (no AVX512_BF16 or AMX)");
}

TEST_CASE("products on a GPU use cuBLAS, with tensor cores below fp32", "[precision]") {
  CHECK(product_instructions(Precision::fp32, kGpu) == "cuBLAS in fp32");
  for (const Precision precision : {Precision::tf32, Precision::bf16, Precision::fp16})
    CHECK(product_instructions(precision, kGpu) == "cuBLAS with tensor cores");
}
