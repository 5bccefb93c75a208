#include "blame/measured_steps.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "core/text.hpp"
#include "monitoring/event_file.hpp"

namespace leeway::blame {
namespace {

class Collector {
 public:
  explicit Collector(std::size_t stages) : stages_(stages) {}

  void handle(const EventRecord& record) {
    const Event& event = record.event;
    const double now = (record.at - Instant()).seconds();
    if (const auto* parked = event.as<event::PullParked>()) {
      workers_[parked->worker].parked.insert(parked->iteration);
    } else if (const auto* evicted = event.as<event::Evicted>()) {
      State& state = workers_[evicted->worker];
      state.started = state.ended = std::nullopt;
      forget_pipeline(evicted->worker);
    } else if (const auto* step = event.as<event::StepStarted>()) {
      State& state = workers_[step->worker];
      const bool waited = state.parked.erase(step->iteration) > 0;
      if (step->group_index > 0) has_groups_ = true;
      if (state.ended && !waited && stages_ == 1) latencies_.push_back((now - *state.ended) / 2);
      state.started = now;
    } else if (const auto* done = event.as<event::StepFinished>()) {
      State& state = workers_[done->worker];
      if (done->worker.value() % stages_ == 0) forget_forwards(done->worker, done->iteration);
      const auto operations = state.operations.extract(done->iteration);
      const bool is_stage = !operations.empty();
      if ((is_stage || state.started) && done->samples > 0)
        state.per_sample.push_back((is_stage ? operations.mapped() : now - *state.started) /
                                   static_cast<double>(done->samples));
      state.started.reset();
      state.ended = now;
    } else if (const auto* operation = event.as<event::StageComputed>()) {
      workers_[operation->worker].operations[operation->iteration] += operation->computed.seconds();
      if (operation->operation == event::StageComputed::Operation::forward)
        computed(*operation, now);
    }
  }

  Expected<MeasuredSteps> steps(const std::string& path) {
    MeasuredSteps steps;
    for (auto& [worker, state] : workers_) {
      if (worker.value() != steps.per_sample.size() || state.per_sample.empty())
        return Error{concat('"', path, "\" has no iteration of worker ", steps.per_sample.size())};
      steps.per_sample.push_back(std::move(state.per_sample));
    }
    if (steps.per_sample.empty())
      return Error{concat('"', path, "\" has no iteration of a worker")};
    // Between two iterations, the workers of a host group also wait for each other.
    if (!latencies_.empty() && !has_groups_) {
      const auto middle = latencies_.begin() + static_cast<std::ptrdiff_t>(latencies_.size() / 2);
      std::nth_element(latencies_.begin(), middle, latencies_.end());
      steps.latency = *middle;
    }
    return steps;
  }

 private:
  /// By pipeline, iteration, micro-batch and chunk.
  using Forward = std::tuple<std::size_t, Iteration, std::uint32_t, std::uint32_t>;

  /// A forward has ended.
  void computed(const event::StageComputed& forward, double now) {
    const std::size_t pipeline = forward.worker.value() / stages_;
    const auto of_chunk = [&](std::uint32_t chunk) {
      return Forward(pipeline, forward.iteration, forward.micro_batch, chunk);
    };
    forwards_[of_chunk(forward.chunk)] = now;
    if (forward.chunk == 0) return;
    const auto before = forwards_.extract(of_chunk(forward.chunk - 1));
    if (!before.empty() && forward.waited_before.ns > 0)
      latencies_.push_back(std::max(0.0, now - forward.computed.seconds() - before.mapped()));
  }

  /// The first stage is the last one to end an iteration.
  void forget_forwards(WorkerId lead, Iteration iteration) {
    const std::size_t pipeline = lead.value() / stages_;
    forwards_.erase(forwards_.lower_bound({pipeline, iteration, 0, 0}),
                    forwards_.lower_bound({pipeline, Iteration(iteration.value() + 1), 0, 0}));
  }
  /// Its unfinished iterations are computed again.
  void forget_pipeline(WorkerId lead) {
    const std::size_t pipeline = lead.value() / stages_;
    for (auto& [worker, state] : workers_)
      if (worker.value() / stages_ == pipeline) state.operations.clear();
    forwards_.erase(forwards_.lower_bound({pipeline, Iteration(), 0, 0}),
                    forwards_.lower_bound({pipeline + 1, Iteration(), 0, 0}));
  }

  struct State {
    std::vector<double> per_sample;
    std::optional<double> started, ended;
    std::set<Iteration> parked;              // iterations whose pulls were
    std::map<Iteration, double> operations;  // seconds of a stage's iterations that have begun
  };

  const std::size_t stages_;
  std::map<WorkerId, State> workers_;
  std::vector<double> latencies_;
  bool has_groups_ = false;
  std::map<Forward, double> forwards_;  // when they ended, of iterations that have not
};

}  // namespace

std::size_t MeasuredSteps::iterations(std::size_t per_member) const {
  std::size_t count = 0;
  for (std::size_t lead = 0; lead < per_sample.size(); lead += per_member)
    count += per_sample[lead].size();
  return count;
}

Expected<MeasuredSteps> read_measured_steps(const std::string& folder, std::size_t stages) {
  const auto path = events_path(folder);
  if (!path) return path.error();
  Collector collector(stages);
  const auto read =
      read_events(*path, [&](const EventRecord& record) { collector.handle(record); });
  if (!read) return read.error();
  return collector.steps(*path);
}

}  // namespace leeway::blame
