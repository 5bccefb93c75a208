#include "blame/critical_path.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "blame/activities.hpp"
#include "blame/result_file.hpp"
#include "blame/sums_by.hpp"
#include "core/text.hpp"
#include "monitoring/event_file.hpp"
#include "monitoring/format.hpp"

namespace leeway::blame {
namespace {

using Activity = CriticalPath::Activity;

/// Follows the path backwards.
class Walk {
 public:
  /// Requires that `activities` have a last computation.
  explicit Walk(const Activities& activities)
      : activities_(activities),
        begin_(*activities.begin()),
        worker_(activities.last()->worker),
        now_(activities.last()->end) {}

  CriticalPath path() {
    CriticalPath path{.seconds = (now_ - begin_).seconds(), .rows = {}};
    std::size_t still = 0;  // steps in which the time has not moved
    while (now_ > begin_) {
      const Instant before = now_;
      // Clocks of nodes that differ could lead around in a circle.
      step(/*may_switch=*/still <= activities_.workers());
      still = now_ < before ? 0 : still + 1;
    }
    for (const auto& [key, seconds] : sums_)
      if (seconds > 0) path.rows.push_back({key.first, key.second, seconds});
    std::ranges::stable_sort(path.rows, std::greater<>(), &CriticalPath::Row::seconds);
    return path;
  }

 private:
  /// Either goes back in time or, if that is allowed, continues with another worker.
  void step(bool may_switch) {
    const auto* const segment = activities_.last_before(worker_, now_);
    if (!segment || segment->end < now_)
      return go_back(segment ? segment->end : begin_, Activity::unknown);
    const auto* const awaited = activities_.awaited(*segment);
    if (!awaited || !may_switch) return go_back(segment->begin, segment->activity);
    const auto* const computation =
        awaited->computation ? activities_.find(*awaited->computation, now_) : nullptr;
    if (computation && computation->worker != worker_) {
      // If its input was computed before, a stage has waited for other things last.
      if (const Instant came{segment->end.ns - awaited->other.ns}; computation->end <= came)
        go_back(came, Activity::undivided);
      worker_ = computation->worker;
      go_back(computation->end, Activity::message);
      go_back(computation->begin, Activity::computing);
    } else if (awaited->worker) {
      worker_ = *awaited->worker;
    } else {
      go_back({segment->end.ns - awaited->other.ns}, Activity::undivided);
      go_back(segment->begin, segment->activity);
    }
  }

  void go_back(Instant to, Activity activity) {
    to = std::clamp(to, begin_, now_);
    sums_[{activity, worker_}] += (now_ - to).seconds();
    now_ = to;
  }

  const Activities& activities_;
  const Instant begin_;
  std::size_t worker_;
  Instant now_;
  std::map<std::pair<Activity, std::size_t>, double> sums_;
};

/// The number of stages of each pipeline in a result.
std::size_t stages_of(const nlohmann::json& result) {
  std::size_t stages = 1;
  for (const auto& entry : result.at("workers"))
    if (entry.contains("stage"))
      stages = std::max(stages, entry.at("stage").get<std::size_t>() + 1);
  return stages;
}

}  // namespace

std::vector<std::pair<Activity, double>> CriticalPath::by_activity() const {
  return sums_by(rows, &Row::activity);
}

std::string name_of(Activity activity) {
  switch (activity) {
    case Activity::computing:
      return "computing";
    case Activity::message:
      return "messages and updates";
    case Activity::request:
      return name_of(Cause{Cause::Kind::request});
    case Activity::samples:
      return name_of(Cause{Cause::Kind::samples});
    case Activity::weights:
      return name_of(Cause{Cause::Kind::weights});
    case Activity::undivided:
      return name_of(Cause{Cause::Kind::other});
    case Activity::unknown:
      return "unknown";
  }
  return "";
}

std::string explain(const CriticalPath& path) {
  if (path.rows.empty()) return "";
  const CriticalPath::Row& most = path.rows.front();
  return concat("The largest share of the critical path is ", name_of(most.activity), " of worker ",
                most.worker, ": ", percent(most.seconds / path.seconds), '.');
}

Expected<CriticalPath> find_critical_path(const std::string& folder) {
  const auto events = events_path(folder);
  if (!events) return events.error();
  std::size_t stages = 1;
  const auto result =
      read_result(folder, [&](const nlohmann::json& json) { stages = stages_of(json); });
  if (!result) return result.error();
  Activities activities(stages);
  const auto read =
      read_events(*events, [&](const EventRecord& record) { activities.handle(record); });
  if (!read) return read.error();
  activities.finish();
  if (!activities.last()) return Error{concat('"', *events, "\" has no iteration that has ended")};
  return Walk(activities).path();
}

}  // namespace leeway::blame
