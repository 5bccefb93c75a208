#pragma once
// Ids of workers for tests.

#include <vector>

#include "core/ids.hpp"

namespace leeway::test {

/// Workers 0 to `count` - 1.
inline std::vector<WorkerId> workers(std::uint32_t count) {
  std::vector<WorkerId> ids;
  for (std::uint32_t i = 0; i < count; ++i) ids.push_back(WorkerId(i));
  return ids;
}

}  // namespace leeway::test
