#pragma once
// Balance: the number of samples in an iteration of each worker, decided with integers only.
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/ids.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// The computation of a worker since its last report.
struct WorkerPace {
  std::int64_t iterations = 0;  // with samples
  std::int64_t samples = 0;
  std::int64_t computed_ns = 0;
};

class Balance {
 public:
  virtual ~Balance() = default;
  virtual std::string_view name() const = 0;
  /// Records a worker's report.
  virtual void measured(WorkerId, const WorkerPace&) {}
  /// The sum of a worker's reports in the window of the policy, for each measured worker. A policy
  /// that is given them by measured() continues with the same speeds.
  virtual std::map<WorkerId, WorkerPace> paces() const { return {}; }
  /// Discards the reports of a worker that has ended. After a restart its speed may differ.
  virtual void forget(WorkerId) {}
  /// The samples of an iteration of each live worker, in the order of `live`. Each number is from 1
  /// to largest_batch(). At any speeds, their mean is iteration_samples() (plan/local_steps.hpp).
  virtual std::vector<std::uint32_t> batches(std::span<const WorkerId> live) = 0;
};

/// The policy that the plan names.
std::unique_ptr<Balance> make_balance(const Plan& plan);

/// The most samples in an iteration of one worker or pipeline. micro_batches.hpp divides them into
/// micro-batches.
std::uint32_t largest_batch(const Plan& plan);

}  // namespace leeway
