#include "kernels/instruction_set.hpp"

#include "core/text.hpp"
#include "kernels/onednn.hpp"
#include "kernels/precision.hpp"

namespace leeway::kernels {

namespace {

/// The newest instructions for products in fp32.
const char* fp32_instructions() {
  using dnnl::cpu_isa;
  for (const cpu_isa isa : {cpu_isa::avx512_core, cpu_isa::avx512_mic})
    if (onednn::has_instructions(isa)) return "AVX-512";
  if (onednn::has_instructions(cpu_isa::avx2)) return "AVX2";
  if (onednn::has_instructions(cpu_isa::avx)) return "AVX";
  if (onednn::has_instructions(cpu_isa::sse41)) return "SSE4.1";
  return "baseline instructions";
}

std::string instructions_of_cpu(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return fp32_instructions();
    case Precision::tf32:
      return concat("multiplied in fp32 with ", fp32_instructions());
    case Precision::fp16:
      return concat("rounded, multiplied in fp32 with ", fp32_instructions());
    case Precision::bf16:
      break;
  }
  if (onednn::has_instructions(dnnl::cpu_isa::avx512_core_amx)) return "AMX";
  if (multiplies_bf16()) return "AVX512_BF16";
  return concat("rounded, multiplied in fp32 with ", fp32_instructions(),
                " (no AVX512_BF16 or AMX)");
}

const char* instructions_of_gpu(Precision precision) {
  return precision == Precision::fp32 ? "cuBLAS in fp32" : "cuBLAS with tensor cores";
}

}  // namespace

const char* instruction_set() {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
  if (__builtin_cpu_supports("x86-64-v4")) return "x86-64-v4";
  if (__builtin_cpu_supports("x86-64-v3")) return "x86-64-v3";
  return "x86-64";
#elif defined(__x86_64__)
  return "x86-64";  // LW_SIMD compiles only the baseline (kernels/simd.hpp)
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "generic";
#endif
}

std::string product_instructions(Precision precision, Device::Kind device) {
  return device == Device::Kind::cuda ? instructions_of_gpu(precision)
                                      : instructions_of_cpu(precision);
}

}  // namespace leeway::kernels
