#pragma once
// LW_SIMD and LW_INLINE: loops that run at the vector width of the processor, in one binary.
//
// A function marked LW_SIMD is compiled for several instruction sets; the loader chooses one.
// Functions that it calls must be marked LW_INLINE, or they use the baseline instruction set.
// LW_INLINE_LAMBDA, after a lambda's parameters, is LW_INLINE for lambdas. Sanitizer builds only
// have the baseline, because sanitizers start after the choice.

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12 && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define LW_SIMD __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define LW_SIMD
#endif

#if defined(__CUDACC__)
#define LW_INLINE __host__ __device__ inline
#else
#define LW_INLINE inline __attribute__((always_inline))
#endif

#define LW_INLINE_LAMBDA __attribute__((always_inline))
