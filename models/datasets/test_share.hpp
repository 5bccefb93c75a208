#pragma once
// draw_test_share: sets samples aside for tests.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/expected.hpp"

namespace leeway {

/// Rows of a file, each list in the file's order.
struct TestShare {
  std::vector<std::size_t> train, test;
};

/// Draws round(share * rows) rows by the seed. `key` is that of the data source, for errors: a
/// share that leaves either set empty.
Expected<TestShare> draw_test_share(std::int64_t rows, double share, std::uint64_t seed,
                                    const std::string& key);

}  // namespace leeway
