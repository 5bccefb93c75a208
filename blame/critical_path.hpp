#pragma once
// CriticalPath: the chain of activities that decided how long a run took, from its events.
//
// It is followed backwards from the end of the last computation whose samples count. A computation
// began after the wait before it. A wait for another worker ended with that worker's push,
// activation or gradient, so the path continues in the computation of that iteration or micro-batch
// by that worker; the time between is that of the message and of the update by it. Each moment is
// on the path once, with one activity of one worker.
//
// Where a wait ended because the other worker was removed, the path continues with that worker.
// Rounds that a scheduler closes (backup, quorum) count as ended by the last push that they
// contain. The path does not lead from one pipeline to another.
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
    undivided,  // request, samples and weights of a stage together
    unknown,    // the worker starts, has given up an iteration, or is lost, idle or leaves
  };
  struct Row {
    Activity activity = Activity::unknown;
    std::size_t worker = 0;
    double seconds = 0;
  };
  double seconds = 0;     // from the first event to that end
  std::vector<Row> rows;  // sum to `seconds`; longest first

  /// The seconds of all workers together, longest first.
  std::vector<std::pair<Activity, double>> by_activity() const;
};

std::string name_of(CriticalPath::Activity activity);
/// A line about the longest row.
std::string explain(const CriticalPath& path);

/// Of the run of a folder with events (--trace). Errors: a file is missing or malformed, or no
/// iteration has ended.
Expected<CriticalPath> find_critical_path(const std::string& folder);

}  // namespace leeway::blame
