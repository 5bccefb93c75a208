#pragma once
// write_timeline: the events of a run as a trace for Perfetto (https://ui.perfetto.dev) or
// chrome://tracing, in the Trace Event Format.
//
// Each actor has a track. Workers show their iterations and what they waited for between them,
// shards the pulls that were parked and the buckets that were applied, the scheduler its leases and
// changes of membership. Flows lead from an iteration to the updates by its pushes, and from an
// update to the iteration that it let begin. Stages show their operations instead of iterations.
//
// Times are exact to the nanosecond, except that a slice begins when the previous slice of its
// track has ended, if it would overlap that.
#include <functional>
#include <ostream>
#include <string>

#include "core/expected.hpp"

namespace leeway::blame {

/// Returns the number of events written. `open` is called when the first event has been read.
/// Errors: the events are missing or malformed.
Expected<std::size_t> write_timeline(const std::string& folder,
                                     const std::function<std::ostream&()>& open);

}  // namespace leeway::blame
