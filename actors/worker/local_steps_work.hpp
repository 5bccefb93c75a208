#pragma once
// LocalStepsWork: an iteration of local steps. The worker takes an optimizer step on each batch of
// its samples, on its own copy of the weights, and pushes the pseudo-gradient: the weights before
// minus those after (McMahan et al., "Communication-Efficient Learning of Deep Networks from
// Decentralized Data", AISTATS 2017, algorithm 1; Reddi et al., ICLR 2021). Of statistics it pushes
// the average over its steps.
//
// Each part is a step. All layers are ready to push after the last one.
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "actors/worker/compute_work.hpp"
#include "actors/worker/iteration_work.hpp"
#include "actors/worker/local_optimizer.hpp"

namespace leeway {

class LocalStepsWork final : public IterationWork {
 public:
  /// `engine` is null when the job only counts costs. Works of one optimizer run one at a time.
  LocalStepsWork(std::shared_ptr<const Job> job, WorkerId worker,
                 std::shared_ptr<ComputeEngine> engine, std::shared_ptr<LocalOptimizer> optimizer,
                 Iteration iteration, LeasedIteration leased, PulledWeights pulled);

  int parts() const override { return steps_; }
  Cost cost(int part) const override;
  void run(int part) override;
  void cancel() override { cancelled_ = true; }

  const PassResult& result() const override { return result_; }
  const std::string& diverged_layer() const override { return diverged_layer_; }
  std::vector<int> layers_of(int part) const override;
  Blob take_gradient(BlockId block) override;
  const std::vector<Version>& versions() const override { return pulled_.versions; }

 private:
  /// The samples of one step.
  LeasedIteration samples_of(int step) const;
  /// The computation of a step's gradient on these weights.
  ComputeWork gradient_of(int step, std::vector<Blob> weights) const;
  /// The samples that the run has trained at this position of the lease's epoch, for the lr
  /// schedule.
  double progress_at(std::int64_t position) const;
  std::vector<Blob> computed(int step);
  /// Replaces the weights after the last step by the pseudo-gradient.
  void finish();

  std::shared_ptr<const Job> job_;
  WorkerId worker_;
  std::shared_ptr<ComputeEngine> engine_;
  std::shared_ptr<LocalOptimizer> optimizer_;
  Iteration iteration_;
  LeasedIteration leased_;
  PulledWeights pulled_;
  int steps_;
  std::vector<Blob> weights_;           // by block; in the end, the pseudo-gradient
  std::vector<int> layers_;             // with buckets, from the last to the first
  std::atomic<bool> cancelled_{false};  // set by the role, read while a part runs
  PassResult result_;
  std::string diverged_layer_;
};

}  // namespace leeway
