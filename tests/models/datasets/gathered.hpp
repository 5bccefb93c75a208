#pragma once
// All samples of a data set, for tests of loaders.
#include <cstdint>
#include <numeric>
#include <vector>

#include "models/datasets/dataset.hpp"

namespace leeway::test {

struct Gathered {
  std::vector<float> x, targets;
  std::vector<std::int32_t> labels;
  bool operator==(const Gathered&) const = default;
};

inline Gathered gather_all(const Dataset& set) {
  const auto size = static_cast<std::size_t>(set.size());
  std::vector<std::int64_t> samples(size);
  std::iota(samples.begin(), samples.end(), std::int64_t{0});
  Gathered out{std::vector<float>(size * static_cast<std::size_t>(set.sample_shape().count())),
               std::vector<float>(set.classes() ? 0 : size),
               std::vector<std::int32_t>(set.classes() ? size : 0)};
  set.gather(samples, out.x.data(), out.labels.data(), out.targets.data());
  return out;
}

}  // namespace leeway::test
