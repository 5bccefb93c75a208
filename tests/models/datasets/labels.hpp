#pragma once
// Labels for tests: gathered alone they must be those that come with the samples.
#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

#include "models/datasets/dataset.hpp"

namespace leeway::test {

/// Labels and targets of samples, last to first: alone, or with their samples.
struct Told {
  Told(const Dataset& data, bool alone) {
    std::vector<std::int64_t> samples(static_cast<std::size_t>(data.size()));
    std::iota(samples.rbegin(), samples.rend(), 0);
    std::vector<float> x(samples.size() * static_cast<std::size_t>(data.sample_shape().count()));
    if (data.classes() > 0)
      labels.resize(samples.size() * static_cast<std::size_t>(data.label_count()));
    targets.resize(samples.size() * static_cast<std::size_t>(data.target_count()));
    if (alone)
      data.gather_labels(samples, labels.data(), targets.data());
    else
      data.gather(samples, x.data(), labels.data(), targets.data());
  }
  std::vector<std::int32_t> labels;
  std::vector<float> targets;
};

inline void require_labels_alone(const Dataset& data) {
  const Told told(data, false), alone(data, true);
  REQUIRE(told.labels.size() + told.targets.size() > 0);
  REQUIRE(alone.labels == told.labels);
  REQUIRE(alone.targets == told.targets);
  const std::vector<std::int64_t> beyond{data.size()};
  Told room(data, true);
  REQUIRE_THROWS_AS(data.gather_labels(beyond, room.labels.data(), room.targets.data()),
                    CheckFailed);
}

}  // namespace leeway::test
