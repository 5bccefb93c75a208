#pragma once
// Counts for tests of elementwise kernels: whole vectors, remainders and, above 1024, several
// sections of a sum.
#include <cstdint>
#include <vector>

namespace leeway::test {

inline std::vector<std::int64_t> elementwise_cases() {
  return {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 100, 255, 1000, 1024, 1025, 5000};
}

}  // namespace leeway::test
