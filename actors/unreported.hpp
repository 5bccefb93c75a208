#pragma once
// Unreported: what workers had not reported to the monitor when they ended. A worker that dies
// sends no last report; its host adds these sums to the result of the run.
#include <map>
#include <mutex>

#include "actors/monitor/report.hpp"

namespace leeway {

/// Thread-safe.
class Unreported {
 public:
  template <class Report>
  void add(WorkerId worker, const Report& report) {
    std::lock_guard lock(mutex_);
    add_work(workers_[worker], report);
  }
  std::map<WorkerId, WorkerTotals> workers() const {
    std::lock_guard lock(mutex_);
    return workers_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<WorkerId, WorkerTotals> workers_;
};

}  // namespace leeway
