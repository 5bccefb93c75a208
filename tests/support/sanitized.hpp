#pragma once
// kThinning: of the cases that a test enumerates, builds with sanitizers run every kThinning-th.
#include <cstdint>

namespace leeway::test {

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LW_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(LW_SANITIZED)
constexpr std::uint64_t kThinning = 8;  // these builds are about ten times slower
#else
constexpr std::uint64_t kThinning = 1;
#endif

}  // namespace leeway::test
