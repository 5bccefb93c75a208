#include "policies/consistency/grace_window.hpp"

#include <algorithm>
#include <cstddef>

namespace leeway {
namespace {

/// Of two middle values the larger one. Requires a value.
Duration median(std::vector<Duration> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

void GraceWindow::arrived(Duration after) {
  if (length_) return;
  if (arrivals_.size() == kMostArrivals) arrivals_.erase(arrivals_.begin());
  arrivals_.push_back(after);
}

std::optional<Instant> GraceWindow::end(Instant opened, Instant quorum) const {
  if (length_) return quorum + *length_;
  const Duration usual = arrivals_.size() < kLeastArrivals ? kMissed : median(arrivals_);
  if (usual == kMissed) {
    std::vector<Duration> known = arrivals_;
    std::erase(known, kMissed);
    if (known.empty()) return std::nullopt;
    return std::max(quorum, opened + Duration{kPatience * std::ranges::max(known).ns});
  }
  std::vector<Duration> deviations;
  for (const Duration one : arrivals_) deviations.push_back(std::max(one - usual, usual - one));
  const Duration deviation = median(std::move(deviations));
  return std::max(quorum, opened + usual + Duration{kDeviations * deviation.ns});
}

}  // namespace leeway
