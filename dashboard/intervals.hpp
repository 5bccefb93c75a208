#pragma once
// Intervals: what a run did, in at most 240 intervals of equal length, so that its memory is
// bounded. When the run is longer, neighbours are merged and the length doubles.
//
// Shape letter: R rows, groups of workers.
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "blame/wait_follower.hpp"

namespace leeway::dashboard {

/// Rows of the page. More workers are grouped.
inline constexpr std::size_t kMostRows = 64;
/// Counted leads of pulls over the slowest worker; the last bin counts all larger ones.
inline constexpr std::size_t kLeads = 17;
using Leads = std::array<std::uint32_t, kLeads>;

/// The number of workers in a set.
inline std::size_t count_of(const std::vector<bool>& workers) {
  return static_cast<std::size_t>(std::count(workers.begin(), workers.end(), true));
}

struct Interval {
  std::uint64_t samples = 0, iterations = 0, updates = 0;
  double compute = 0;                                            // seconds of all workers
  std::map<std::pair<std::size_t, blame::Cause>, double> waits;  // seconds by row and cause
  std::vector<std::int32_t> lead;     // [R]: the largest at an answered pull; -1: none
  std::vector<std::uint32_t> parked;  // [R]: parked pulls
  Leads leads{};                      // answered pulls by lead
  std::uint32_t alive = 0;            // at the end
  std::vector<bool> taking_part;      // by worker: has computed, up to its last finished iteration
  std::vector<bool> contributing;     // by worker: an update has its samples
  std::uint64_t push_bytes = 0, pull_bytes = 0, stage_bytes = 0;
  std::uint64_t changed = 0;  // the revision of the last change

  /// Adds the interval after this one.
  void merge(const Interval& next);
  void add_bytes(const Interval& other);
  /// Keeps the longest waits; the others of a row become one, of an unknown cause.
  void trim();
};

class Intervals {
 public:
  static constexpr std::size_t kMost = 240;
  /// Waits of one interval that are kept apart.
  static constexpr std::size_t kMostWaits = 256;

  Intervals(std::size_t workers, std::size_t rows) : workers_(workers), rows_(rows) {}

  /// The interval that contains the time, in seconds of the run. Times before 0 count as 0.
  Interval& at(double seconds, std::uint64_t revision);
  /// Calls use(interval, share) for the intervals between the times, with their shares of the span.
  template <class Use>
  void spread(double begin, double end, std::uint64_t revision, Use&& use);

  /// Drops intervals after the end of the run in which no worker computed or waited. Their bytes
  /// belong to the last interval.
  void end_at(double seconds, std::uint64_t revision);

  double width() const { return width_; }
  /// The revision at which the width has doubled last.
  std::uint64_t widened() const { return widened_; }
  const std::vector<Interval>& all() const { return intervals_; }

 private:
  Interval empty() const;
  void widen(std::uint64_t revision);

  std::size_t workers_, rows_;
  double width_ = 1e-3;  // seconds
  std::uint64_t widened_ = 0;
  std::vector<Interval> intervals_;
};

template <class Use>
void Intervals::spread(double begin, double end, std::uint64_t revision, Use&& use) {
  at(end, revision);  // the last one: from here on the width stays
  const double span = end - begin;
  if (span <= 0) return;
  double from = begin;
  for (bool last = false; !last;) {
    Interval& interval = at(from, revision);
    const auto index = static_cast<double>(&interval - intervals_.data());
    const double until = (index + 1) * width_;
    last = until >= end || until <= from;
    use(interval, ((last ? end : until) - from) / span);
    from = until;
  }
}

}  // namespace leeway::dashboard
