#pragma once
// GraceWindow: how long a round with a quorum waits for further pushes.
//
// The window has a fixed length from the quorum on, or it ends at the median of recent arrivals
// plus kDeviations median absolute deviations, both counted from the opening of the round. A push
// that misses its round counts as later than all others. While half of the pushes miss theirs, or
// few arrivals are known, the window is kPatience times as long as the latest known arrival took:
// rounds then measure when these pushes arrive, and no worker stops the others.
//
// Source: the Decoupled DiLoCo team, "Decoupled DiLoCo for Resilient Distributed Pre-training",
// arXiv 2604.21428, 2026, which waits for a quorum and an adaptive grace window; the rule for the
// length is Leeway's. Rousseeuw and Croux, "Alternatives to the Median Absolute Deviation", JASA
// 88(424), 1993, describe the two robust statistics.
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "core/limits.hpp"
#include "core/time.hpp"

namespace leeway {

class GraceWindow {
 public:
  static constexpr int kDeviations = 3, kPatience = 4;
  /// The length follows from at least and at most this many arrivals.
  static constexpr std::size_t kLeastArrivals = 8, kMostArrivals = limits::kMaxGraceArrivals;
  /// In place of the arrival of a push that missed its round.
  static constexpr Duration kMissed{std::numeric_limits<std::int64_t>::max()};

  static GraceWindow fixed(Duration length) { return GraceWindow(length); }
  static GraceWindow adaptive() { return GraceWindow(std::nullopt); }

  /// False if the window ends at once.
  bool has_length() const { return length_ != Duration{}; }
  /// A push came this long after its round was opened.
  void arrived(Duration after);
  /// A push was not part of its round.
  void missed() { arrived(kMissed); }
  /// When the window of a round ends that was opened at `opened` and had its quorum at `quorum`;
  /// empty: when all pushes have arrived, because no arrival is known.
  std::optional<Instant> end(Instant opened, Instant quorum) const;

  /// The recent arrivals, the oldest first; none for a fixed length.
  const std::vector<Duration>& arrivals() const { return arrivals_; }
  void restore(std::vector<Duration> arrivals) { arrivals_ = std::move(arrivals); }

 private:
  explicit GraceWindow(std::optional<Duration> length) : length_(length) {}

  std::optional<Duration> length_;  // empty: adaptive
  std::vector<Duration> arrivals_;
};

}  // namespace leeway
