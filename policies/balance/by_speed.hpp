#pragma once
// By speed: who computes faster gets more samples an iteration, so that all take equally long.
//
// It cures what no staleness bound does: a worker that is always slow. Weighting by speed and the
// division by largest remainder (Hamilton's method of apportionment) are textbook; the idea to even
// out synchronous training by unequal batches is that of Chen et al., "Semi-Dynamic Load Balancing:
// Efficient Distributed Learning in Non-Dedicated Environments", SoCC 2020.
#include <map>

#include "policies/balance/balance.hpp"

namespace leeway {

class BySpeed final : public Balance {
 public:
  /// No worker gets more than so many batches, or less than kLeast samples where a batch has them:
  /// batch norm needs two.
  static constexpr std::uint32_t kMostBatches = 8, kLeast = 2;
  /// A worker has the batch of the plan until so many of its iterations are measured.
  static constexpr std::int64_t kFirstIterations = 4;
  /// Of so many iterations the speed is the mean, then the older ones count for half.
  static constexpr std::int64_t kWindow = 32;
  /// Sizes stay until one of them is off by more than this percentage, and a sample.
  static constexpr std::int64_t kTolerance = 10;

  explicit BySpeed(std::uint32_t batch) : batch_(batch) {}
  std::string_view name() const override { return "by_speed"; }
  void measured(WorkerId worker, const WorkerPace& pace) override;
  void forget(WorkerId worker) override { paces_.erase(worker); }
  std::vector<std::uint32_t> batches(std::span<const WorkerId> live) override;

 private:
  std::vector<std::uint32_t> wanted(std::span<const WorkerId> live) const;

  std::uint32_t batch_;
  std::map<WorkerId, WorkerPace> paces_;  // sums
  std::vector<WorkerId> live_;            // whom sizes_ are for
  std::vector<std::uint32_t> sizes_;
};

/// Divides `total` in proportion to `weights`, each part between `least` and `most`; what rounding
/// leaves goes to the largest remainders, of equal ones to the first. Requires
/// n * least <= total <= n * most, total < 2^32, and weights of 1 to 2^30.
std::vector<std::uint32_t> divide(std::int64_t total, std::span<const std::int64_t> weights,
                                  std::int64_t least, std::int64_t most);

}  // namespace leeway
