#include "sim/shared_cores.hpp"

#include <algorithm>
#include <cmath>

#include "core/check.hpp"

namespace leeway::sim {

namespace {

constexpr double kRounding = 0.5;  // nanoseconds: a remainder from rounding

/// Rounds up to whole nanoseconds.
Duration rounded_up(double time) {
  return nanoseconds(std::max<std::int64_t>(static_cast<std::int64_t>(std::ceil(time)), 0));
}

}  // namespace

SharedCores::SharedCores(std::uint32_t cores, Duration slice, double contention)
    : cores_(cores), slice_(static_cast<double>(slice.ns)), contention_(contention) {}

SharedCores::Thread SharedCores::add_thread() {
  threads_.emplace_back();
  return static_cast<Thread>(threads_.size() - 1);
}

double SharedCores::speed() const {
  if (cores_ == 1 || running_.empty()) return 1;
  const auto others = static_cast<double>(running_.size() - 1);
  return 1 / (1 + contention_ * others / (cores_ - 1));
}

void SharedCores::advance(Instant now) {
  const auto time = static_cast<double>((now - at_).ns);
  const double done = time * speed();
  at_ = now;
  for (const Thread thread : running_) {
    State& state = threads_[thread];
    state.left -= done;
    state.had += time;
    state.slice -= time;
    // No thread waited at the end of the slice, so another slice has begun.
    if (slice_ > 0 && waiting_.empty() && state.slice < 0)
      state.slice += slice_ * std::ceil(-state.slice / slice_);
  }
}

double SharedCores::least_had() const {
  double least = waiting_.empty() ? threads_[running_.front()].had : waiting_.begin()->first.first;
  for (const Thread thread : running_) least = std::min(least, threads_[thread].had);
  return least;
}

void SharedCores::wait(Thread thread) {
  State& state = threads_[thread];
  // A preempted thread precedes others with equal core time.
  const double rank = state.slice > kRounding ? state.had - slice_ : state.had;
  waiting_.insert({{slice_ > 0 ? rank : 0, next_since_++}, thread});
}

void SharedCores::start_first() {
  if (waiting_.empty()) return;
  const Thread thread = waiting_.begin()->second;
  waiting_.erase(waiting_.begin());
  if (threads_[thread].slice <= kRounding) threads_[thread].slice = slice_;
  running_.push_back(thread);
}

void SharedCores::preempt(std::size_t place) {
  const Thread thread = running_[place];
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(place));
  start_first();
  wait(thread);
}

void SharedCores::work(Thread thread, Duration time, Instant now) {
  advance(now);
  State& state = threads_[thread];
  state.left = static_cast<double>(time.ns);
  if (state.done) {  // the thread keeps its core
    state.done = false;
    return;
  }
  if (!running_.empty()) state.had = std::max(state.had, least_had() - slice_);
  wait(thread);
  if (running_.size() < cores_) return start_first();
  if (slice_ <= 0) return;
  const auto most = std::max_element(running_.begin(), running_.end(), [&](Thread a, Thread b) {
    return threads_[a].had < threads_[b].had;
  });
  if (!threads_[*most].done && threads_[*most].had - state.had > slice_ / 2 &&
      waiting_.begin()->second == thread)
    preempt(static_cast<std::size_t>(most - running_.begin()));
}

void SharedCores::sleep(Thread thread, Instant now) {
  advance(now);
  LW_CHECK(threads_[thread].done, thread);
  threads_[thread].done = false;
  threads_[thread].slice = 0;
  std::erase(running_, thread);
  start_first();
}

std::optional<SharedCores::Thread> SharedCores::finished(Instant now) {
  advance(now);
  for (const Thread thread : running_) {
    if (threads_[thread].left > kRounding) continue;
    threads_[thread].done = true;
    return thread;
  }
  for (std::size_t place = 0; place < running_.size(); ++place) {
    State& state = threads_[running_[place]];
    if (slice_ <= 0 || waiting_.empty() || state.slice > kRounding) continue;
    if (waiting_.begin()->first.first <= state.had)
      preempt(place--);  // later threads move up
    else
      state.slice = slice_;
  }
  return std::nullopt;
}

std::optional<Instant> SharedCores::next() const {
  std::optional<Instant> first;
  const double speed = this->speed();
  for (const Thread thread : running_) {
    const State& state = threads_[thread];
    Duration time = rounded_up(state.left / speed);
    if (slice_ > 0 && !waiting_.empty()) time = std::min(time, rounded_up(state.slice));
    if (!first || at_ + time < *first) first = at_ + time;
  }
  return first;
}

}  // namespace leeway::sim
