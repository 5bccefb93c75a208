#include "blame/timeline.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "blame/wait_follower.hpp"
#include "core/text.hpp"
#include "monitoring/event_file.hpp"
#include "monitoring/event_log.hpp"

namespace leeway::blame {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// Updates are moments, but flows need slices.
constexpr Duration kMoment = nanoseconds(100);
/// Perfetto shows a thread with the number of its process as the main one; no track has this
/// number.
constexpr std::size_t kProcess = 1;

/// Nanoseconds in the format's unit. The quotient has the shortest text with three decimals, which
/// readers convert back to the same nanoseconds.
double microseconds_of(std::int64_t ns) {
  return static_cast<double>(ns) / 1e3;
}

class Timeline {
 public:
  explicit Timeline(std::ostream& out)
      : out_(out), waits_([this](const Wait& wait) {
          slice(concat("worker ", wait.worker), concat("waits for ", name_of(wait.cause)),
                wait.begin, wait.end, "wait", {});
        }) {
    out_ << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  }

  void handle(const EventRecord& record) {
    const auto& [address, now, event] = record;
    waits_.handle(address, now, event);
    const std::string actor = concat(address);
    if (const auto* step = event.as<event::StepStarted>()) {
      started_[actor] = {now, step->iteration, {}};
    } else if (const auto* done = event.as<event::StepFinished>()) {
      step_finished(*done, actor, now);
    } else if (const auto* operation = event.as<event::StageComputed>()) {
      stage_computed(*operation, actor, now);
    } else if (const auto* parked = event.as<event::PullParked>()) {
      parked_[{actor, {parked->worker, parked->iteration}}] = now;
    } else if (const auto* released = event.as<event::PullReleased>()) {
      if (const auto applied = last_update_.find(actor); applied != last_update_.end())
        released_[{released->worker, released->iteration}] = {actor, applied->second};
    } else if (const auto* pull = event.as<event::PullAnswered>()) {
      answered(*pull, actor, now);
    } else if (const auto* update = event.as<event::BucketApplied>()) {
      applied(*update, actor, now);
    } else if (!event.as<event::ClockMoved>() && !event.as<event::BucketRepeated>() &&
               !event.as<event::GradientEncoded>()) {
      write({{"name", event_name(event)}, {"ph", "i"}, {"s", "t"}, {"args", event_fields(event)}},
            actor, now);
    }
  }

  std::size_t finish() {
    write_line(
        {{"name", "process_name"}, {"ph", "M"}, {"pid", kProcess}, {"args", {{"name", "leeway"}}}});
    for (const auto& [actor, track] : tracks_) {
      write_line({{"name", "thread_name"},
                  {"ph", "M"},
                  {"pid", kProcess},
                  {"tid", track},
                  {"args", {{"name", actor}}}});
      write_line({{"name", "thread_sort_index"},
                  {"ph", "M"},
                  {"pid", kProcess},
                  {"tid", track},
                  {"args", {{"sort_index", track}}}});
    }
    out_ << "\n]}\n";
    return count_;
  }

 private:
  using Pull = std::pair<WorkerId, Iteration>;
  using PullAtShard = std::pair<std::string, Pull>;
  using UpdateAtShard = std::pair<std::string, Instant>;
  struct Started {
    Instant at;
    Iteration iteration;
    std::vector<UpdateAtShard> updates;  // by its pushes, so far
  };

  void step_finished(const event::StepFinished& step, const std::string& actor, Instant now) {
    const auto started = started_.extract(actor);
    if (!started || stages_.contains(actor)) return;  // a stage's operations are its slices
    const auto& [at, iteration, updates] = started.mapped();
    const Instant begin = slice(actor, concat("iteration ", iteration), at, now, "compute",
                                {{"samples", step.samples}});
    computed({step.worker, iteration}, actor, begin);
    for (const auto& [shard, update] : updates) flow("push", actor, begin, shard, update);
  }

  void stage_computed(const event::StageComputed& operation, const std::string& actor,
                      Instant now) {
    stages_.insert(actor);
    if (operation.computed.ns == 0) return;  // the second event of a backward in one piece
    const Instant begin = slice(
        actor, concat(name_of(operation.operation), " of micro-batch ", operation.micro_batch),
        {now.ns - operation.computed.ns}, now, "compute",
        {{"iteration", operation.iteration.value()}, {"chunk", operation.chunk}});
    computed({operation.worker, operation.iteration}, actor, begin);
  }

  /// A slice of an iteration has been written. The first one ends the flow from the update that let
  /// the iteration begin.
  void computed(const Pull& pull, const std::string& actor, Instant begin) {
    computed_[pull] = begin;
    const auto released = released_.extract(pull);
    if (!released) return;
    const auto& [shard, update] = released.mapped();
    flow("releases", shard, update, actor, begin);
  }

  void answered(const event::PullAnswered& pull, const std::string& actor, Instant now) {
    const auto parked = parked_.find({actor, {pull.worker, pull.iteration}});
    if (parked == parked_.end()) return;
    // Parked pulls overlap, so they are asynchronous events beside the shard's track. Readers do
    // not show its name with them.
    const OrderedJson id{{"local", next_id_++}};
    const OrderedJson name = concat("parked pull of worker ", pull.worker, " at ", actor);
    const OrderedJson arguments{{"iteration", pull.iteration.value()}};
    write({{"name", name}, {"cat", "parked"}, {"ph", "b"}, {"id2", id}, {"args", arguments}}, actor,
          parked->second);
    write({{"name", name}, {"cat", "parked"}, {"ph", "e"}, {"id2", id}}, actor, now);
    parked_.erase(parked);
  }

  void applied(const event::BucketApplied& update, const std::string& actor, Instant now) {
    const Pull pull{update.worker, update.iteration};
    const Instant begin =
        slice(actor, concat("update by worker ", pull.first), now, now + kMoment, "update",
              {{"iteration", pull.second.value()}, {"bucket", update.bucket}});
    last_update_[actor] = begin;
    const std::string from = concat("worker ", pull.first);
    // Pushes leave during the iteration, which may not have ended yet. Those of a stage leave after
    // operations.
    const auto running = started_.find(from);
    if (running != started_.end() && running->second.iteration == pull.second &&
        !stages_.contains(from))
      running->second.updates.emplace_back(actor, begin);
    else if (const auto computed = computed_.find(pull); computed != computed_.end())
      flow("push", from, computed->second, actor, begin);
  }

  /// Returns where the slice begins: not before the previous slice of the actor has ended. A wait
  /// and the event before it are measured by different readings of the clock, updates may be closer
  /// than kMoment, and readers drop a slice that overlaps another one.
  Instant slice(const std::string& actor, const std::string& name, Instant begin, Instant end,
                const char* category, OrderedJson arguments) {
    Instant& last = ends_[actor];
    begin = std::max(begin, last);
    end = last = std::max(end, begin + nanoseconds(1));
    OrderedJson json{
        {"name", name}, {"cat", category}, {"ph", "X"}, {"dur", microseconds_of((end - begin).ns)}};
    if (!arguments.empty()) json["args"] = std::move(arguments);
    write(std::move(json), actor, begin);
    return begin;
  }

  /// From the slice of `from` that contains `begin` to the slice of `to` that contains `end`.
  void flow(const char* name, const std::string& from, Instant begin, const std::string& to,
            Instant end) {
    const OrderedJson id = next_id_++;
    write({{"name", name}, {"cat", "flow"}, {"ph", "s"}, {"id", id}}, from, begin);
    write({{"name", name}, {"cat", "flow"}, {"ph", "f"}, {"bp", "e"}, {"id", id}}, to, end);
  }

  void write(OrderedJson json, const std::string& actor, Instant at) {
    json["pid"] = kProcess;
    json["tid"] = tracks_.try_emplace(actor, track_of(actor)).first->second;
    json["ts"] = microseconds_of(at.ns);
    ++count_;
    write_line(json);
  }
  void write_line(const OrderedJson& json) {
    if (std::exchange(has_lines_, true)) out_ << ",\n";
    out_ << json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  }

  /// The number of an actor's track. Perfetto sorts tracks by their numbers: scheduler and monitor,
  /// then shards, standbys and workers.
  static std::size_t track_of(const std::string& actor) {
    std::size_t number = 0;
    const auto space = actor.find(' ');
    if (space != std::string::npos)
      std::from_chars(actor.data() + space + 1, actor.data() + actor.size(), number);
    constexpr std::size_t kMost = 100'000;
    const auto is = [&](RoleKind kind) { return actor.starts_with(name_of(kind)); };
    if (is(RoleKind::worker)) return 3 * kMost + number;
    if (is(RoleKind::standby)) return 2 * kMost + number;
    if (is(RoleKind::shard)) return kMost + number;
    return kProcess + (is(RoleKind::scheduler) ? 1 : is(RoleKind::monitor) ? 2 : 3);
  }

  std::ostream& out_;
  WaitFollower waits_;
  std::map<std::string, std::size_t> tracks_;  // by actor
  std::map<std::string, Started> started_;     // by worker: its iteration
  std::map<std::string, Instant> ends_;        // by actor: of its last slice
  std::map<Pull, Instant> computed_;           // by iteration: where its last slice begins
  std::set<std::string> stages_;               // actors that compute operations
  std::map<PullAtShard, Instant> parked_;
  std::map<std::string, Instant> last_update_;  // by shard
  std::map<Pull, UpdateAtShard> released_;      // by which update
  std::uint64_t next_id_ = 1;
  std::size_t count_ = 0;
  bool has_lines_ = false;
};

}  // namespace

Expected<std::size_t> write_timeline(const std::string& folder,
                                     const std::function<std::ostream&()>& open) {
  const auto path = events_path(folder);
  if (!path) return path.error();
  std::optional<Timeline> timeline;
  const auto read = read_events(*path, [&](const EventRecord& record) {
    if (!timeline) timeline.emplace(open());
    timeline->handle(record);
  });
  if (!read) return read.error();
  if (!timeline) return Error{concat('"', *path, "\" has no events")};
  return timeline->finish();
}

}  // namespace leeway::blame
