#include "dashboard/intervals.hpp"

#include <algorithm>
#include <cmath>

namespace leeway::dashboard {

void Interval::merge(const Interval& next) {
  samples += next.samples;
  iterations += next.iterations;
  updates += next.updates;
  compute += next.compute;
  add_bytes(next);
  for (const auto& [key, seconds] : next.waits) waits[key] += seconds;
  for (std::size_t row = 0; row < lead.size(); ++row) {
    lead[row] = std::max(lead[row], next.lead[row]);
    parked[row] += next.parked[row];
  }
  for (std::size_t i = 0; i < kLeads; ++i) leads[i] += next.leads[i];
  for (std::size_t worker = 0; worker < taking_part.size(); ++worker) {
    if (next.taking_part[worker]) taking_part[worker] = true;
    if (next.contributing[worker]) contributing[worker] = true;
  }
  alive = next.alive;
  changed = std::max(changed, next.changed);
  trim();
}

void Interval::add_bytes(const Interval& other) {
  push_bytes += other.push_bytes;
  pull_bytes += other.pull_bytes;
  stage_bytes += other.stage_bytes;
}

void Interval::trim() {
  if (waits.size() <= Intervals::kMostWaits) return;
  std::vector<double> longest;
  for (const auto& [key, seconds] : waits) longest.push_back(seconds);
  const auto bound = longest.begin() + Intervals::kMostWaits / 2;
  std::ranges::nth_element(longest, bound, std::greater<>());
  std::map<std::pair<std::size_t, blame::Cause>, double> kept;
  for (const auto& [key, seconds] : waits)
    kept[seconds >= *bound ? key : std::pair{key.first, blame::Cause{}}] += seconds;
  waits = std::move(kept);
}

Interval Intervals::empty() const {
  Interval interval;
  interval.lead.assign(rows_, -1);
  interval.parked.assign(rows_, 0);
  interval.taking_part.assign(workers_, false);
  interval.contributing.assign(workers_, false);
  return interval;
}

void Intervals::widen(std::uint64_t revision) {
  for (std::size_t i = 0; i < intervals_.size(); i += 2) {
    Interval merged = std::move(intervals_[i]);
    if (i + 1 < intervals_.size()) merged.merge(intervals_[i + 1]);
    intervals_[i / 2] = std::move(merged);
  }
  intervals_.resize((intervals_.size() + 1) / 2);
  width_ *= 2;
  widened_ = revision;
}

Interval& Intervals::at(double seconds, std::uint64_t revision) {
  const auto position = [&] { return std::floor(std::max(seconds, 0.0) / width_); };
  while (position() >= static_cast<double>(kMost)) widen(revision);
  const auto index = static_cast<std::size_t>(position());
  while (index >= intervals_.size()) {
    Interval next = empty();
    if (!intervals_.empty()) next.alive = intervals_.back().alive;
    next.changed = revision;
    intervals_.push_back(std::move(next));
  }
  intervals_[index].changed = revision;
  return intervals_[index];
}

void Intervals::end_at(double seconds, std::uint64_t revision) {
  const auto begin = [&] { return width_ * static_cast<double>(intervals_.size() - 1); };
  while (intervals_.size() > 1 && begin() > seconds && intervals_.back().samples == 0 &&
         intervals_.back().waits.empty() && intervals_.back().compute == 0) {
    const Interval dropped = std::move(intervals_.back());
    intervals_.pop_back();
    intervals_.back().add_bytes(dropped);
  }
  if (!intervals_.empty()) intervals_.back().changed = revision;
  widened_ = revision;  // viewers receive all intervals again
}

}  // namespace leeway::dashboard
