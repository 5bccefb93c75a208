#pragma once
// RecentProgress: the current rate and training loss of a run, from its reports of the last
// seconds.
#include <deque>
#include <limits>
#include <utility>

#include "actors/monitor/report.hpp"

namespace leeway {

class RecentProgress {
 public:
  void add(const Progress& progress);
  /// Samples computed per second, over the last two seconds; 0 before the second report.
  double samples_per_second() const;
  /// An exponential average; NaN before the first loss.
  double train_loss() const { return loss_; }

 private:
  std::deque<std::pair<Instant, std::uint64_t>> samples_;  // of recent reports, with their times
  double loss_ = std::numeric_limits<double>::quiet_NaN();
};

}  // namespace leeway
