#include "sim/shared_cores.hpp"

#include <algorithm>
#include <cmath>

#include "core/check.hpp"

namespace leeway::sim {

namespace {

constexpr double kNothing = 0.5;  // nanoseconds: what rounding leaves

/// The first whole nanosecond by which so much time is over.
Duration at_least(double time) {
  return nanoseconds(std::max<std::int64_t>(static_cast<std::int64_t>(std::ceil(time)), 0));
}

}  // namespace

SharedCores::SharedCores(std::uint32_t cores, Duration slice, double contention)
    : cores_(cores), slice_(static_cast<double>(slice.ns)), contention_(contention) {}

double SharedCores::speed() const {
  if (cores_ == 1 || running_.empty()) return 1;
  const auto others = static_cast<double>(running_.size() - 1);
  return 1 / (1 + contention_ * others / (cores_ - 1));
}

void SharedCores::advance(Instant now) {
  const auto time = static_cast<double>((now - at_).ns);
  const double done = time * speed();
  at_ = now;
  for (Running& running : running_) {
    running.left -= done;
    running.slice -= time;
    // Nobody waited when it was over, so another has begun.
    if (slice_ > 0 && waiting_.empty() && running.slice < 0)
      running.slice += slice_ * std::ceil(-running.slice / slice_);
  }
}

void SharedCores::work(Thread thread, Duration time, Instant now) {
  advance(now);
  const auto left = static_cast<double>(time.ns);
  const auto its_own = std::find_if(running_.begin(), running_.end(),
                                    [&](const Running& it) { return it.thread == thread; });
  if (its_own != running_.end()) {
    LW_CHECK(its_own->done, thread);
    its_own->left = left;
    its_own->done = false;
  } else {
    waiting_.push_back({thread, left});
    start_next();
  }
}

void SharedCores::sleep(Thread thread, Instant now) {
  advance(now);
  std::erase_if(running_, [&](const Running& it) { return it.done && it.thread == thread; });
  start_next();
}

void SharedCores::start_next() {
  if (waiting_.empty() || running_.size() == cores_) return;
  const Waiting next = waiting_.front();
  waiting_.pop_front();
  running_.push_back({next.thread, next.left, slice_, false});
}

void SharedCores::take_turns() {
  if (slice_ <= 0) return;
  for (Running& running : running_) {
    if (waiting_.empty()) return;
    if (running.slice > kNothing) continue;
    const Waiting next = waiting_.front();
    waiting_.pop_front();
    waiting_.push_back({running.thread, running.left});
    running = {next.thread, next.left, slice_, false};
  }
}

std::optional<SharedCores::Thread> SharedCores::finished(Instant now) {
  advance(now);
  for (Running& running : running_) {
    if (running.left > kNothing) continue;
    running.done = true;
    return running.thread;
  }
  take_turns();
  return std::nullopt;
}

std::optional<Instant> SharedCores::next() const {
  std::optional<Instant> first;
  const double speed = this->speed();
  for (const Running& running : running_) {
    Duration time = at_least(running.left / speed);
    if (slice_ > 0 && !waiting_.empty()) time = std::min(time, at_least(running.slice));
    if (!first || at_ + time < *first) first = at_ + time;
  }
  return first;
}

}  // namespace leeway::sim
