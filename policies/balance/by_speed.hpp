#pragma once
// By speed: faster workers get more samples per iteration, so that all iterations take equally
// long.
//
// This helps against a worker that is always slow, which no staleness bound does. Weights by speed
// and apportionment by largest remainder (Hamilton's method) are textbook. Unequal batches for
// synchronous training are from Chen et al., "Semi-Dynamic Load Balancing: Efficient Distributed
// Learning in Non-Dedicated Environments", SoCC 2020.
#include <map>

#include "policies/balance/balance.hpp"

namespace leeway {

class BySpeed final : public Balance {
 public:
  /// A worker gets at most kMostBatches times the plan's batch, and at least kLeast samples if the
  /// batch has that many: batch norm needs two.
  static constexpr std::uint32_t kMostBatches = 8, kLeast = 2;
  /// A worker keeps the plan's batch until this many of its iterations are measured.
  static constexpr std::int64_t kFirstIterations = 4;
  /// The speed is a mean over at most this many iterations. Beyond that, the sums are halved.
  static constexpr std::int64_t kWindow = 32;
  /// Sizes stay until one of them is off by more than this percentage plus one sample.
  static constexpr std::int64_t kTolerance = 10;

  explicit BySpeed(std::uint32_t batch) : batch_(batch) {}
  std::string_view name() const override { return "by_speed"; }
  void measured(WorkerId worker, const WorkerPace& pace) override;
  std::map<WorkerId, WorkerPace> paces() const override { return paces_; }
  void forget(WorkerId worker) override { paces_.erase(worker); }
  std::vector<std::uint32_t> batches(std::span<const WorkerId> live) override;

 private:
  std::vector<std::uint32_t> sizes_by_speed(std::span<const WorkerId> live) const;

  std::uint32_t batch_;
  std::map<WorkerId, WorkerPace> paces_;  // sums
  std::vector<WorkerId> live_;            // the workers of sizes_
  std::vector<std::uint32_t> sizes_;
};

/// Divides `total` in proportion to `weights` into shares between `least` and `most`. Units left
/// by rounding go to the largest remainders, and among equal remainders to the first. Requires
/// n * least <= total <= n * most, total < 2^32, and weights of 1 to 2^30.
std::vector<std::uint32_t> apportion(std::int64_t total, std::span<const std::int64_t> weights,
                                     std::int64_t least, std::int64_t most);

}  // namespace leeway
