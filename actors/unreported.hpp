#pragma once
// Unreported: what workers had not reported to the monitor when they ended. A worker that dies
// sends no last report; its host adds these sums to the result of the run.
#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>

#include "actors/monitor/report.hpp"

namespace leeway {

/// Thread-safe.
class Unreported {
 public:
  void add(WorkerId worker, const msg::WorkerReport& report) {
    std::lock_guard lock(mutex_);
    auto& sum = workers_[worker];
    sum.iterations += report.iterations;
    sum.samples += report.samples;
    sum.compute += report.compute;
    sum.wait += report.wait;
    sum.wait_before += report.wait_before;
    sum.wait_after += report.wait_after;
    sum.memory_bytes = std::max(sum.memory_bytes, report.memory_bytes);
  }
  std::map<WorkerId, msg::WorkerReport> workers() const {
    std::lock_guard lock(mutex_);
    return workers_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<WorkerId, msg::WorkerReport> workers_;
};

}  // namespace leeway
