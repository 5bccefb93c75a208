#include "blame/timeline.hpp"

#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "blame/wait_follower.hpp"
#include "core/text.hpp"
#include "monitoring/event_file.hpp"
#include "monitoring/event_log.hpp"

namespace leeway::blame {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr double kMicroseconds = 1e6;  // the unit of the format
/// Updates and answers are moments; flows need slices.
constexpr double kMoment = 1;  // us

class Timeline {
 public:
  explicit Timeline(std::ostream& out)
      : out_(out), waits_([this](std::size_t worker, const Cause& cause, double begin, double end) {
          slice(concat("worker ", worker), concat("waits for ", name_of(cause)),
                kMicroseconds * begin, kMicroseconds * end, "wait", {});
        }) {
    out_ << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  }

  void handle(const EventRecord& record) {
    const auto& [address, at, event] = record;
    waits_.handle(address, at, event);
    const std::string actor = concat(address);
    const double now = (at - Instant()).seconds() * kMicroseconds;
    if (const auto* step = event.as<event::StepStarted>()) {
      step_started(*step, actor, now);
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
      auto json = OrderedJson::parse(event_line(address, at, event));
      const OrderedJson name = json.at("event");
      for (const char* known : {"ns", "actor", "event"}) json.erase(known);
      write({{"name", name}, {"ph", "i"}, {"s", "t"}, {"args", json}}, actor, now);
    }
  }

  std::size_t finish() {
    for (const auto& [actor, track] : tracks_) {
      write_line({{"name", "thread_name"},
                  {"ph", "M"},
                  {"pid", 1},
                  {"tid", track},
                  {"args", {{"name", actor}}}});
      write_line({{"name", "thread_sort_index"},
                  {"ph", "M"},
                  {"pid", 1},
                  {"tid", track},
                  {"args", {{"sort_index", sort_index(actor)}}}});
    }
    out_ << "\n]}\n";
    return count_;
  }

 private:
  using Pull = std::pair<WorkerId, Iteration>;
  using PullAtShard = std::pair<std::string, Pull>;
  struct Started {
    double at = 0;
    Iteration iteration;
  };

  void step_started(const event::StepStarted& step, const std::string& actor, double now) {
    const Pull pull{step.worker, step.iteration};
    started_[actor] = {now, pull.second};
    const auto released = released_.find(pull);
    if (released == released_.end()) return;
    const auto& [shard, update] = released->second;
    flow("releases", shard, update, actor, now);
    released_.erase(released);
  }

  void step_finished(const event::StepFinished& step, const std::string& actor, double now) {
    const auto started = started_.find(actor);
    if (started == started_.end()) return;
    const auto [at, iteration] = started->second;
    // Operations show when a stage computes.
    if (!stages_.contains(actor))
      slice(actor, concat("iteration ", iteration), at, now, "compute",
            {{"samples", step.samples}});
    computed_[{step.worker, iteration}] = {at, iteration};
    started_.erase(started);
  }

  void stage_computed(const event::StageComputed& operation, const std::string& actor, double now) {
    stages_.insert(actor);
    if (operation.computed.ns == 0) return;  // the second event of a backward in one piece
    slice(actor, concat(name_of(operation.operation), " of micro-batch ", operation.micro_batch),
          now - operation.computed.seconds() * kMicroseconds, now, "compute",
          {{"iteration", operation.iteration.value()}, {"chunk", operation.chunk}});
  }

  void answered(const event::PullAnswered& pull, const std::string& actor, double now) {
    const auto parked = parked_.find({actor, {pull.worker, pull.iteration}});
    if (parked == parked_.end()) return;
    // Parked pulls overlap, so they are asynchronous events beside the shard's track.
    const OrderedJson id = next_id_++;
    const OrderedJson name = concat("parked pull of worker ", pull.worker);
    const OrderedJson arguments{{"iteration", pull.iteration.value()}};
    write({{"name", name}, {"cat", "parked"}, {"ph", "b"}, {"id", id}, {"args", arguments}}, actor,
          parked->second);
    write({{"name", name}, {"cat", "parked"}, {"ph", "e"}, {"id", id}}, actor, now);
    parked_.erase(parked);
  }

  void applied(const event::BucketApplied& update, const std::string& actor, double now) {
    const WorkerId worker = update.worker;
    const Iteration iteration = update.iteration;
    slice(actor, concat("update by worker ", worker), now, now + kMoment, "update",
          {{"iteration", iteration.value()}, {"bucket", update.bucket}});
    last_update_[actor] = now;
    // Pushes leave during the iteration, which may not have ended yet.
    const std::string from = concat("worker ", worker);
    if (const auto running = started_.find(from);
        running != started_.end() && running->second.iteration == iteration)
      flow("push", from, running->second.at, actor, now);
    else if (const auto computed = computed_.find({worker, iteration}); computed != computed_.end())
      flow("push", from, computed->second.at, actor, now);
  }

  void slice(const std::string& actor, const std::string& name, double begin, double end,
             const char* category, OrderedJson arguments) {
    OrderedJson json{{"name", name}, {"cat", category}, {"ph", "X"}, {"dur", end - begin}};
    if (!arguments.empty()) json["args"] = std::move(arguments);
    write(std::move(json), actor, begin);
  }

  /// From the slice of `from` that contains `begin` to the slice of `to` that contains `end`.
  void flow(const char* name, const std::string& from, double begin, const std::string& to,
            double end) {
    const OrderedJson id = next_id_++;
    write({{"name", name}, {"cat", "flow"}, {"ph", "s"}, {"id", id}}, from, begin);
    write({{"name", name}, {"cat", "flow"}, {"ph", "f"}, {"bp", "e"}, {"id", id}}, to, end);
  }

  void write(OrderedJson json, const std::string& actor, double at) {
    json["pid"] = 1;
    json["tid"] = tracks_.try_emplace(actor, tracks_.size() + 1).first->second;
    json["ts"] = at;
    ++count_;
    write_line(json);
  }
  void write_line(const OrderedJson& json) {
    if (std::exchange(has_lines_, true)) out_ << ",\n";
    out_ << json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  }

  /// Scheduler and monitor first, then shards, then workers.
  static std::size_t sort_index(const std::string& actor) {
    std::size_t number = 0;
    const auto space = actor.find(' ');
    if (space != std::string::npos)
      std::from_chars(actor.data() + space + 1, actor.data() + actor.size(), number);
    constexpr std::size_t kMost = 1'000'000;
    return number + (actor.starts_with("worker")  ? 2 * kMost
                     : actor.starts_with("shard") ? kMost
                                                  : 0);
  }

  std::ostream& out_;
  WaitFollower waits_;
  std::map<std::string, std::size_t> tracks_;  // by actor
  std::map<std::string, Started> started_;     // by worker: its iteration
  std::map<Pull, Started> computed_;           // iterations that have ended
  std::set<std::string> stages_;               // actors that compute operations
  std::map<PullAtShard, double> parked_;
  std::map<std::string, double> last_update_;                // by shard
  std::map<Pull, std::pair<std::string, double>> released_;  // by which shard's update
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
