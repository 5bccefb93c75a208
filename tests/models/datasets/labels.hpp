#pragma once
// Checks that gather_labels() agrees with gather().
#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

#include "models/datasets/dataset.hpp"

namespace leeway::test {

/// Labels and targets of all samples, last to first, from gather_labels() or gather().
struct GatheredLabels {
  GatheredLabels(const Dataset& data, bool only_labels) {
    std::vector<std::int64_t> samples(static_cast<std::size_t>(data.size()));
    std::iota(samples.rbegin(), samples.rend(), 0);
    std::vector<float> x(samples.size() * static_cast<std::size_t>(data.sample_shape().count()));
    if (data.classes() > 0)
      labels.resize(samples.size() * static_cast<std::size_t>(data.label_count()));
    targets.resize(samples.size() * static_cast<std::size_t>(data.target_count()));
    if (only_labels)
      data.gather_labels(samples, labels.data(), targets.data());
    else
      data.gather(samples, x.data(), labels.data(), targets.data());
  }
  std::vector<std::int32_t> labels;
  std::vector<float> targets;
};

inline void require_labels_agree(const Dataset& data) {
  const GatheredLabels expected(data, false), found(data, true);
  REQUIRE(expected.labels.size() + expected.targets.size() > 0);
  REQUIRE(found.labels == expected.labels);
  REQUIRE(found.targets == expected.targets);
  const std::vector<std::int64_t> out_of_range{data.size()};
  GatheredLabels out(data, true);
  REQUIRE_THROWS_AS(data.gather_labels(out_of_range, out.labels.data(), out.targets.data()),
                    CheckFailed);
}

}  // namespace leeway::test
