#pragma once
// Worker: a participant that trains the whole model. It pushes gradients layer by layer during
// backward.
//
// A running worker with a lease pulls weights, and computes the iteration when they have arrived.
// Without a lease it waits for the scheduler. It differs from a one-stage pipeline: a single work
// computes its whole iteration, and a round that closes without its push makes it skip iterations.
// Both compute with ComputeWork. With local steps, the work takes several of them in turn.
#include <memory>

#include "actors/worker/iteration_work.hpp"
#include "actors/worker/local_optimizer.hpp"
#include "actors/worker/whole_worker.hpp"

namespace leeway {

class Worker final : public WholeWorker {
 public:
  Worker(std::shared_ptr<const Job> job, WorkerId id, std::uint32_t launch = 1);

  /// See warm_up.hpp. Stages are not warmed up.
  void warm_up() override;
  void on_part(Work& work, int part, Outbox& out) override;

 private:
  void advance(Outbox& out) override;
  void forget() override;
  bool is_iterating() const override { return work_ != nullptr; }
  void discard_work() override { work_->cancel(); }

  void stop_if_done(Outbox& out);
  void start_iteration(Outbox& out);
  /// One gradient of all samples, or the plan's local steps.
  std::shared_ptr<IterationWork> work_of(const LeasedIteration& leased, PulledWeights pulled);
  void push_layers(int part, Outbox& out);
  void finish_iteration(Iteration iteration, std::int64_t samples, Outbox& out);

  std::shared_ptr<IterationWork> work_;        // of the iteration; null between two
  bool given_up_ = false;                      // counted, and its work cancelled
  std::shared_ptr<LocalOptimizer> optimizer_;  // of local steps; null without
};

}  // namespace leeway
