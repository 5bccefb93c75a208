#pragma once
// Evaluation: a model's loss and accuracy on the test set. It is computed in slices, so that other
// work runs in between.
#include <memory>
#include <string>
#include <vector>

#include "actors/job.hpp"
#include "actors/outbox.hpp"
#include "models/pass.hpp"

namespace leeway {

class Evaluation final : public Work {
 public:
  /// weights: one blob per block, of the snapshot at `iteration`.
  Evaluation(std::shared_ptr<const Job> job, std::uint64_t snapshot, Iteration iteration,
             std::vector<Blob> weights);

  int parts() const override;
  Cost cost(int part) const override;
  /// Throws nothing: an evaluation that fails must not end the run.
  void run(int part) override;

  std::uint64_t snapshot() const { return snapshot_; }
  Iteration iteration() const { return iteration_; }
  const std::vector<Blob>& weights() const { return weights_; }
  // Valid after the last part:
  /// Why the evaluation has failed; empty if it has not.
  const std::string& error() const { return error_; }
  double loss() const { return loss_sum_ / static_cast<double>(job_->data.test->size()); }
  /// Share of labels that the largest output predicts; 0 without classes.
  double accuracy() const {
    return static_cast<double>(correct_) /
           static_cast<double>(job_->data.test->size() * job_->data.test->label_count());
  }

 private:
  void evaluate(int part);

  std::shared_ptr<const Job> job_;
  std::uint64_t snapshot_;
  Iteration iteration_;
  std::int64_t slice_;  // samples of one part
  std::vector<Blob> weights_;
  std::unique_ptr<Pass> pass_;
  std::vector<std::uint64_t> versions_;
  double loss_sum_ = 0;
  std::int64_t correct_ = 0;
  std::string error_;
};

}  // namespace leeway
