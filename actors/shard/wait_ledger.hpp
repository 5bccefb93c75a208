#pragma once
// WaitLedger: the time that each worker's pulls were parked, by the worker that they waited for.
#include <map>
#include <utility>
#include <vector>

#include "core/ids.hpp"
#include "core/time.hpp"
#include "messages/monitor.hpp"

namespace leeway {

class WaitLedger {
 public:
  using Wait = msg::Wait;

  /// Beyond limits::kMaxWaits pairs, only the longer half is kept.
  void add(WorkerId worker, WorkerId for_worker, Duration time);
  std::vector<Wait> all() const;
  /// Replaces the waits by those of all().
  void restore(const std::vector<Wait>& waits);

 private:
  void drop_shorter_half();

  std::map<std::pair<WorkerId, WorkerId>, Wait> waits_;
};

}  // namespace leeway
