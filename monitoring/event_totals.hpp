#pragma once
// EventTotals: adds up iterations, waiting times and the leads of pulls from the events of a run.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/time.hpp"
#include "messages/events.hpp"

namespace leeway {

/// Counts observations by their size, without locks. Several threads may add at once.
template <std::size_t kBounds>
class AtomicHistogram {
 public:
  using Bounds = std::array<std::int64_t, kBounds>;
  struct Counts {
    std::array<std::uint64_t, kBounds + 1> by_bound{};  // the last has all that exceed the bounds
    std::int64_t sum = 0;                               // of the observations
  };

  /// `bounds`: the largest observation of each range, in rising order.
  explicit AtomicHistogram(const Bounds& bounds) : bounds_(bounds) {}

  void add(std::int64_t observation) {
    std::size_t range = 0;
    while (range < kBounds && observation > bounds_[range]) ++range;
    counts_[range].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(observation, std::memory_order_relaxed);
  }
  const Bounds& bounds() const { return bounds_; }
  Counts read() const {
    Counts counts;
    for (std::size_t range = 0; range <= kBounds; ++range)
      counts.by_bound[range] = counts_[range].load(std::memory_order_relaxed);
    counts.sum = sum_.load(std::memory_order_relaxed);
    return counts;
  }

 private:
  const Bounds& bounds_;
  std::array<std::atomic<std::uint64_t>, kBounds + 1> counts_{};
  std::atomic<std::int64_t> sum_{0};
};

/// Thread-safe: an event costs a few atomic operations and no allocation. Times are those of the
/// run, so they are virtual in a simulation.
class EventTotals {
 public:
  /// A run with more workers has one sum of all workers: monitoring systems keep a time series for
  /// each worker and range.
  static constexpr std::uint32_t kMaxSingleWorkers = 64;
  static constexpr std::array<std::int64_t, 15> kTimeBounds = {
      500'000,       1'000'000,     2'500'000,     5'000'000,      10'000'000,
      25'000'000,    50'000'000,    100'000'000,   250'000'000,    500'000'000,
      1'000'000'000, 2'500'000'000, 5'000'000'000, 10'000'000'000, 30'000'000'000};  // ns
  static constexpr std::array<std::int64_t, 14> kLeadBounds = {0, 1,  2,  3,  4,  5,  6,
                                                               8, 10, 12, 16, 24, 32, 64};
  using Times = AtomicHistogram<kTimeBounds.size()>;
  using Leads = AtomicHistogram<kLeadBounds.size()>;

  /// The times of one worker, or of all.
  struct alignas(64) Work {
    std::atomic<std::int64_t> wait_ns{0};
    std::atomic<std::int64_t> compute_ns{0};
    /// Of iterations with samples, in nanoseconds: from the end of the one before, or from the
    /// moment when the worker was ready to compute if that was later.
    Times iterations{kTimeBounds};
  };

  /// `piped`: the workers are stages, whose operations report waits and computations.
  EventTotals(std::uint32_t workers, bool piped);

  void add(Instant at, const Event& event);

  /// By worker, or only one for all workers.
  std::span<const Work> work() const { return work_; }
  bool is_by_worker() const { return work_.size() == started_.size(); }
  /// Of answered pulls at each shard: the iteration less the least clock of the live workers.
  const Leads& leads() const { return leads_; }

 private:
  /// The newest iteration of a worker. Only the worker's own events change it.
  struct Started {
    std::atomic<std::int64_t> iteration{-1};
    std::atomic<std::int64_t> ready_ns{0};  // when the worker began to wait for its weights
    std::atomic<std::int64_t> begun_ns{0};
    std::atomic<std::int64_t> finished_ns{-1};  // the end of the iteration before
  };

  bool has(WorkerId worker) const { return worker.value() < started_.size(); }
  Work& work_of(WorkerId worker) { return work_[is_by_worker() ? worker.value() : 0]; }
  void begin(Instant at, const event::StepStarted& step);
  void finish(Instant at, const event::StepFinished& step);

  const bool piped_;
  std::vector<Started> started_;  // by worker
  std::vector<Work> work_;
  Leads leads_{kLeadBounds};
};

}  // namespace leeway
