#pragma once
// Balance: how many samples an iteration of each worker has. Integers in, sizes out.
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/ids.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// What a worker computed lately.
struct WorkerPace {
  std::int64_t iterations = 0;  // with samples
  std::int64_t samples = 0;
  std::int64_t computed_ns = 0;
};

class Balance {
 public:
  virtual ~Balance() = default;
  virtual std::string_view name() const = 0;
  /// A worker says what it has computed since it last said so.
  virtual void measured(WorkerId, const WorkerPace&) {}
  /// The worker has ended. If it comes back it may be as fast as it likes.
  virtual void forget(WorkerId) {}
  /// The samples of an iteration of each live worker, in their order. The sum is that of as many
  /// batches of the plan, whoever is how fast; each is 1 at least and largest_batch() at most.
  virtual std::vector<std::uint32_t> batches(std::span<const WorkerId> live) = 0;
};

/// By the plan.
std::unique_ptr<Balance> make_balance(const Plan& plan);

/// The most samples that an iteration of one worker, or pipeline, ever has. In how many
/// micro-batches they are computed, and how large those are: micro_batches.hpp.
std::uint32_t largest_batch(const Plan& plan);

}  // namespace leeway
