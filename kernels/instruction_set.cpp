#include "kernels/instruction_set.hpp"

namespace leeway::kernels {

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

}  // namespace leeway::kernels
