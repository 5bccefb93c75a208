#include "monitoring/profile_table.hpp"

#include <catch2/catch.hpp>

#include "core/text.hpp"
#include "kernels/instruction_set.hpp"
#include "tests/support/tiny.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

constexpr Device kCpu{}, kGpu{Device::Kind::cuda, 0}, kSecondGpu{Device::Kind::cuda, 1};

std::string products_of(Plan plan, const std::string& precision,
                        const std::vector<Device>& devices) {
  plan.precision = precision;
  return products_text(*job_of(plan)->model, devices);
}

std::string on_cpu(Precision precision) {
  return kernels::product_instructions(precision, Device::Kind::host);
}

}  // namespace

TEST_CASE("a profile names the instructions of the precisions that layers with products use") {
  CHECK(products_of(tiny_plan(), "fp32", {kCpu, kCpu}) ==
        concat("  On the CPU, fp32 products: ", on_cpu(Precision::fp32), '\n'));
  CHECK(products_of(tiny_plan(), "bf16,0=fp32", {kCpu}) ==
        concat("  On the CPU, fp32 products: ", on_cpu(Precision::fp32),
               "; bf16 products: ", on_cpu(Precision::bf16), '\n'));
  // Not of the relu layers, which compute in fp32.
  CHECK(products_of(tiny_plan(), "fp16", {kCpu}) ==
        concat("  On the CPU, fp16 products: ", on_cpu(Precision::fp16), '\n'));
}

TEST_CASE("a profile names the instructions of each kind of device with workers") {
  CHECK(products_of(tiny_plan(), "fp16", {kGpu, kSecondGpu}) ==
        "  On the GPU, fp16 products: cuBLAS with tensor cores\n");
  CHECK(products_of(tiny_plan(), "fp32", {kGpu, kCpu}) ==
        concat("  On the CPU, fp32 products: ", on_cpu(Precision::fp32),
               "\n  On the GPU, fp32 products: cuBLAS in fp32\n"));
}

TEST_CASE("a profile names the products of layers inside of residual blocks") {
  Plan plan = tiny_plan();
  plan.model = {plan::Residual{.body = {plan::Linear{4}}}, plan::Relu{}, plan::Linear{3}};
  CHECK(products_of(plan, "fp16,2=fp32", {kGpu}) ==
        "  On the GPU, fp32 products: cuBLAS in fp32; fp16 products: cuBLAS with tensor cores\n");
}
