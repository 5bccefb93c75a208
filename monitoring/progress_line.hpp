#pragma once
// ProgressLine: shows the progress of a run in one line of the terminal; if standard error is no
// terminal, prints a line every few seconds.
#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "actors/monitor/monitor.hpp"
#include "actors/monitor/recent_progress.hpp"

namespace leeway {

class ProgressLine final : public Audience {
 public:
  /// `out` is usually std::cerr. It counts as a terminal if standard error is one.
  ProgressLine(const Job& job, std::ostream& out);

  void progress(const Progress& progress) override;
  void evaluated(const EvaluationResult& result) override;
  void checkpointed(const CheckpointResult& result) override;
  void evicted(WorkerId worker, const msg::Evicted& evicted) override;
  void came_back(WorkerId worker) override;
  void bound_moved(const msg::BoundMoved& moved) override;
  void replicas_changed(const msg::ReplicasChanged& changed) override;
  void ended(const RunTotals& totals) override;

 private:
  std::string text(const Progress& progress);
  void clear();
  void note(const std::string& text);

  std::ostream& out_;
  std::shared_ptr<const Stages> stages_;
  bool terminal_;
  std::int64_t data_size_;
  double epochs_;
  bool has_losses_;
  bool adaptive_;  // the staleness bound moves
  std::string gap_limit_;
  RecentProgress recent_;
  std::string evaluation_;
  std::optional<Instant> checkpoint_at_;  // of the last one written
  bool checkpoint_failed_ = false;
  Instant printed_at_{-1};
};

}  // namespace leeway
