#include "actors/shard/wait_ledger.hpp"

#include <algorithm>

#include "core/limits.hpp"

namespace leeway {

void WaitLedger::add(WorkerId worker, WorkerId for_worker, Duration time) {
  Wait& wait = waits_[{worker, for_worker}];
  wait.worker = worker;
  wait.for_worker = for_worker;
  wait.time += time;
  ++wait.count;
  if (waits_.size() > limits::kMaxWaits) drop_shorter_half();
}

std::vector<WaitLedger::Wait> WaitLedger::all() const {
  std::vector<Wait> all;
  for (const auto& [pair, wait] : waits_) all.push_back(wait);
  return all;
}

void WaitLedger::restore(const std::vector<Wait>& waits) {
  waits_.clear();
  for (const Wait& wait : waits) waits_[{wait.worker, wait.for_worker}] = wait;
}

void WaitLedger::drop_shorter_half() {
  std::vector<Duration> times;
  for (const auto& [pair, wait] : waits_) times.push_back(wait.time);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  std::erase_if(waits_, [&](const auto& entry) { return entry.second.time <= *middle; });
}

}  // namespace leeway
