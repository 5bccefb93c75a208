#include "actors/monitor/recent_progress.hpp"

#include <cmath>

namespace leeway {
namespace {

constexpr Duration kRateWindow = seconds(2);
constexpr double kNewLossShare = 0.3;

}  // namespace

void RecentProgress::add(const Progress& progress) {
  samples_.emplace_back(progress.now, progress.samples);
  while (samples_.size() > 2 && progress.now - samples_.front().first > kRateWindow)
    samples_.pop_front();
  if (!std::isfinite(progress.train_loss)) return;
  loss_ = std::isnan(loss_) ? progress.train_loss
                            : (1 - kNewLossShare) * loss_ + kNewLossShare * progress.train_loss;
}

double RecentProgress::samples_per_second() const {
  if (samples_.empty()) return 0;
  const double span = (samples_.back().first - samples_.front().first).seconds();
  const auto samples = static_cast<double>(samples_.back().second - samples_.front().second);
  return span > 0 ? samples / span : 0;
}

}  // namespace leeway
