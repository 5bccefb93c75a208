#pragma once
// LW_SIMD and LW_INLINE: one binary whose loops run at the vector width of the processor it meets.
//
// A function marked LW_SIMD is compiled once per instruction set and chosen when the program is
// loaded. What it calls must be marked LW_INLINE, or it stays at the baseline. Sanitizers start too
// late for the choice, so there is none then. LW_INLINE_LAMBDA, after a lambda's parameters, is
// LW_INLINE for lambdas.
//
// A function marked LW_AVX512 is compiled for AVX-512 only. Its caller checks that the processor
// has it.

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12 && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define LW_SIMD __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define LW_SIMD
#endif

#if defined(__x86_64__) && defined(__GNUC__)
#define LW_AVX512 __attribute__((target("arch=x86-64-v4")))
#else
#define LW_AVX512
#endif

#if defined(__CUDACC__)
#define LW_INLINE __host__ __device__ inline
#else
#define LW_INLINE inline __attribute__((always_inline))
#endif

#define LW_INLINE_LAMBDA __attribute__((always_inline))
