#include "cluster/job_progress.hpp"

#include <limits>

#include "actors/job.hpp"

namespace leeway {

JobProgress::JobProgress(const Job& job)
    : epoch_samples_(static_cast<double>(job.data.train->size())),
      has_losses_(job.has_losses()),
      has_classes_(job.data.train->classes() > 0),
      has_moving_bound_(job.consistency->has_moving_bound()) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  if (const auto bound = job.consistency->largest_bound(); bound != kUnbounded)
    latest_.bound = bound;
  latest_.epochs = job.plan.stop.epochs;
  latest_.train_loss = latest_.test_loss = latest_.test_accuracy = kUnknown;
}

void JobProgress::progress(const Progress& progress) {
  std::lock_guard lock(mutex_);
  recent_.add(progress);
  latest_.epoch = static_cast<double>(progress.samples) / epoch_samples_;
  latest_.iterations = progress.iterations;
  latest_.samples = progress.samples;
  latest_.samples_per_second = recent_.samples_per_second();
  if (has_losses_) latest_.train_loss = recent_.train_loss();
  if (has_moving_bound_) latest_.bound = progress.staleness;
  latest_.workers = progress.live_workers;
  latest_.push_bytes = progress.push_bytes;
  latest_.plain_push_bytes = progress.plain_push_bytes;
  latest_.pull_bytes = progress.pull_bytes;
  latest_.plain_pull_bytes = progress.plain_pull_bytes;
  latest_.stage_bytes = progress.stage_bytes;
  latest_.plain_stage_bytes = progress.plain_stage_bytes;
}

void JobProgress::evaluated(const EvaluationResult& result) {
  if (!has_losses_ || !result.error.empty()) return;
  std::lock_guard lock(mutex_);
  latest_.test_loss = result.loss;
  if (has_classes_) latest_.test_accuracy = result.accuracy;
}

void JobProgress::fill(node::Status& status) const {
  std::lock_guard lock(mutex_);
  status.progress = latest_;
}

}  // namespace leeway
