#pragma once
// CriticalPath: the chain of activities that decided how long a run took, from its events.
//
// It is followed backwards from the end of the last computation. A computation began after the wait
// before it. A wait for another worker ended with that worker's push, activation or gradient, so
// the path continues at the end of that worker's computation; the time between is that of the
// message and of the update by it. Each moment is on the path once, with one activity of one
// worker.
//
// Known limits. The awaited computation is found by its time, so it may be an earlier one if its
// end is reported after the pull is answered, or a later one of a stage. Waits of chunks that run
// back (zb_v, dualpipe_v) name no stage. A pull that the removal of a worker releases counts as a
// message of that worker.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/expected.hpp"

namespace leeway::blame {

struct CriticalPath {
  enum class Activity : std::uint8_t {
    computing,
    message,  // a push, an activation or a gradient on its way, and the update by the push
    request,  // of the worker, as in Cause
    samples,
    weights,
    other,  // not known: the worker's start, an iteration that was given up, a stage's requests
  };
  struct Row {
    Activity activity = Activity::other;
    std::size_t worker = 0;
    double seconds = 0;
  };
  double seconds = 0;     // from the first event to the end of the last computation
  std::vector<Row> rows;  // sum to `seconds`; longest first

  /// The seconds of all workers together, longest first.
  std::vector<std::pair<Activity, double>> by_activity() const;
};

std::string name_of(CriticalPath::Activity activity);
/// A sentence about the longest row.
std::string explain(const CriticalPath& path);

/// Of the run of a folder with events (--trace). Errors: a file is missing or malformed, or no
/// worker has computed.
Expected<CriticalPath> find_critical_path(const std::string& folder);

}  // namespace leeway::blame
