#pragma once
// JobProgress: the latest figures of a job for its status, at the node that hosts the monitor.
#include <mutex>

#include "actors/monitor/monitor.hpp"
#include "actors/monitor/recent_progress.hpp"
#include "messages/node.hpp"

namespace leeway {

class JobProgress final : public Audience {
 public:
  explicit JobProgress(const Job& job);

  void progress(const Progress& progress) override;
  void evaluated(const EvaluationResult& result) override;
  void ended(const RunTotals&) override {}
  /// Thread-safe.
  void fill(node::Status& status) const;

 private:
  const double epoch_samples_;
  const bool has_losses_;
  const bool has_classes_;
  const bool has_moving_bound_;

  mutable std::mutex mutex_;  // guards the members below
  RecentProgress recent_;
  node::Status::Progress latest_;
};

}  // namespace leeway
