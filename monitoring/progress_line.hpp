#pragma once
// ProgressLine: the run's progress on the terminal, in one line that is rewritten; line by line,
// and less often, elsewhere.
#include <deque>
#include <memory>
#include <ostream>
#include <string>

#include "actors/monitor/monitor.hpp"

namespace leeway {

class ProgressLine final : public Audience {
 public:
  /// `out` is std::cerr usually; it is taken for a terminal when standard error is one.
  ProgressLine(const Job& job, std::ostream& out);

  void progress(const Progress& progress) override;
  void evaluated(const EvaluationResult& result) override;
  void evicted(WorkerId worker, const msg::Evicted& evicted) override;
  void came_back(WorkerId worker) override;
  void ended(const RunTotals& totals) override;

 private:
  std::string text(const Progress& progress);
  double samples_per_second(const Progress& progress);
  void clear();
  void note(const std::string& text);

  std::ostream& out_;
  std::shared_ptr<const Stages> stages_;
  bool terminal_;
  std::int64_t data_size_;
  double epochs_;
  bool learns_;    // losses are computed
  bool adaptive_;  // the staleness bound moves
  std::string gap_limit_;
  std::deque<std::pair<Instant, std::uint64_t>> recent_;  // the last seconds: samples computed
  double loss_ = 0;                                       // smoothed
  bool loss_known_ = false;
  std::string evaluation_;
  Instant printed_at_{-1};
};

}  // namespace leeway
