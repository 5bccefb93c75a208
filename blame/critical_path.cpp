#include "blame/critical_path.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "blame/result_file.hpp"
#include "blame/sums_by.hpp"
#include "blame/wait_follower.hpp"
#include "core/text.hpp"
#include "monitoring/event_file.hpp"
#include "monitoring/format.hpp"

namespace leeway::blame {
namespace {

using Activity = CriticalPath::Activity;

/// An activity of a worker.
struct Segment {
  Instant begin, end;
  Activity activity = Activity::other;
  std::optional<std::size_t> waits_for;  // another worker
};

Activity activity_of(Cause::Kind cause) {
  switch (cause) {
    case Cause::Kind::request:
      return Activity::request;
    case Cause::Kind::samples:
      return Activity::samples;
    case Cause::Kind::weights:
      return Activity::weights;
    case Cause::Kind::worker:
    case Cause::Kind::stage_before:
    case Cause::Kind::stage_after:
      return Activity::message;
    case Cause::Kind::other:
      return Activity::other;
  }
  return Activity::other;
}

/// The segments of all workers, in their order, from the events of a run.
class Segments {
 public:
  /// `stages`: of each pipeline; 1 without pipelines.
  explicit Segments(std::size_t stages)
      : stages_(stages),
        waits_([this](std::size_t worker, const Cause& cause, Instant begin, Instant end) {
          add(worker, {begin, end, activity_of(cause.kind), awaited(cause)});
        }) {}

  void handle(const EventRecord& record) {
    const auto& [actor, now, event] = record;
    if (!begin_ || now < *begin_) begin_ = now;
    if (stages_ > 1) {
      const auto* operation = event.as<event::StageComputed>();
      if (!operation) return;
      find_neighbours(*operation);
      waits_.handle(actor, now, event);
      add(operation->worker.value(),
          {{now.ns - operation->computed.ns}, now, Activity::computing, {}});
      return;
    }
    waits_.handle(actor, now, event);
    if (const auto* step = event.as<event::StepStarted>()) {
      started_[step->worker] = now;
    } else if (const auto* done = event.as<event::StepFinished>()) {
      if (const auto started = started_.extract(done->worker))
        add(done->worker.value(), {started.mapped(), now, Activity::computing, {}});
    } else if (const auto* evicted = event.as<event::Evicted>()) {
      started_.erase(evicted->worker);
    }
  }

  /// None if no worker has computed.
  std::optional<CriticalPath> path() const;

 private:
  /// By pipeline, iteration, micro-batch and chunk.
  using Place = std::tuple<std::size_t, Iteration, std::uint32_t, std::uint32_t>;

  /// After the segments of the worker so far: a wait and the computation before it are measured by
  /// different readings of the clock.
  void add(std::size_t worker, Segment segment) {
    auto& all = of_[worker];
    if (!all.empty()) segment.begin = std::max(segment.begin, all.back().end);
    if (segment.end > segment.begin) all.push_back(segment);
  }

  /// The worker that a wait with this cause ends with; none if it is not known.
  std::optional<std::size_t> awaited(const Cause& cause) const {
    switch (cause.kind) {
      case Cause::Kind::worker:
        return cause.worker;
      case Cause::Kind::stage_before:
        return before_;
      case Cause::Kind::stage_after:
        return after_;
      default:
        return std::nullopt;
    }
  }

  /// Finds the stages that have computed the input of an operation.
  void find_neighbours(const event::StageComputed& operation) {
    const std::size_t stage = operation.worker.value(), pipeline = stage / stages_;
    const auto place = [&](std::uint32_t chunk) {
      return Place(pipeline, operation.iteration, operation.micro_batch, chunk);
    };
    const auto take = [&](auto& from, std::uint32_t chunk) -> std::optional<std::size_t> {
      const auto taken = from.extract(place(chunk));
      return taken ? std::optional(taken.mapped()) : std::nullopt;
    };
    before_ = after_ = std::nullopt;
    using Operation = event::StageComputed::Operation;
    if (operation.operation == Operation::forward) {
      if (operation.chunk > 0) before_ = take(activations_, operation.chunk - 1);
      activations_[place(operation.chunk)] = stage;
    } else if (operation.operation == Operation::backward_inputs) {
      after_ = take(gradients_, operation.chunk + 1);
      if (operation.chunk > 0) gradients_[place(operation.chunk)] = stage;
      activations_.erase(place(operation.chunk));  // of the last chunk: no chunk has taken it
    }
  }

  /// The last segment of a worker that fits and begins before `time`, or null.
  template <class Fits>
  const Segment* last_before(std::size_t worker, Instant time, Fits fits) const {
    const auto found = of_.find(worker);
    if (found == of_.end()) return nullptr;
    const auto& all = found->second;
    auto end = std::ranges::lower_bound(all, time, {}, &Segment::begin);
    while (end != all.begin())
      if (const Segment& segment = *--end; fits(segment)) return &segment;
    return nullptr;
  }

  /// The worker whose computation ends last, and its end.
  std::optional<std::pair<std::size_t, Instant>> last_computation() const {
    std::optional<std::pair<std::size_t, Instant>> last;
    for (const auto& [worker, segments] : of_)
      for (const Segment& segment : segments)
        if (segment.activity == Activity::computing && (!last || segment.end > last->second))
          last = {worker, segment.end};
    return last;
  }

  const std::size_t stages_;
  WaitFollower waits_;
  std::optional<Instant> begin_;                    // of the run
  std::map<std::size_t, std::vector<Segment>> of_;  // by worker
  std::map<WorkerId, Instant> started_;
  std::map<Place, std::size_t> activations_, gradients_;  // the stages that have computed them
  std::optional<std::size_t> before_, after_;             // see find_neighbours()
};

std::optional<CriticalPath> Segments::path() const {
  const auto last = last_computation();
  if (!last) return std::nullopt;
  auto [worker, now] = *last;
  CriticalPath path{.seconds = (now - *begin_).seconds(), .rows = {}};
  std::map<std::pair<Activity, std::size_t>, double> sums;
  const auto go_back = [&](Instant to, Activity activity) {
    sums[{activity, worker}] += (now - to).seconds();
    now = to;
  };
  while (now > *begin_) {
    const Segment* const segment = last_before(worker, now, [](const Segment&) { return true; });
    if (!segment) {
      go_back(*begin_, Activity::other);
      break;
    }
    if (segment->end < now) go_back(segment->end, Activity::other);
    const Segment* cause = nullptr;
    if (segment->waits_for)
      cause = last_before(*segment->waits_for, now, [&](const Segment& one) {
        return one.activity == Activity::computing && one.end <= now;
      });
    if (cause) {
      worker = *segment->waits_for;
      go_back(cause->end, Activity::message);
    } else {
      go_back(segment->begin, segment->activity);
    }
  }
  for (const auto& [key, seconds] : sums) path.rows.push_back({key.first, key.second, seconds});
  std::ranges::stable_sort(path.rows, std::greater<>(), &CriticalPath::Row::seconds);
  return path;
}

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
    case Activity::other:
      return "other";
  }
  return "";
}

std::string explain(const CriticalPath& path) {
  if (path.rows.empty()) return "";
  const CriticalPath::Row& most = path.rows.front();
  return concat("The longest part of the critical path, ", percent(most.seconds / path.seconds),
                ", is ", name_of(most.activity), " of worker ", most.worker, '.');
}

Expected<CriticalPath> find_critical_path(const std::string& folder) {
  const auto events = events_path(folder);
  if (!events) return events.error();
  std::size_t stages = 1;
  const auto result =
      read_result(folder, [&](const nlohmann::json& json) { stages = stages_of(json); });
  if (!result) return result.error();
  Segments segments(stages);
  const auto read =
      read_events(*events, [&](const EventRecord& record) { segments.handle(record); });
  if (!read) return read.error();
  auto path = segments.path();
  if (!path) return Error{concat('"', *events, "\" has no iteration of a worker")};
  return std::move(*path);
}

}  // namespace leeway::blame
