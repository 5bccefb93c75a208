#include "blame/measured_steps.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/text.hpp"
#include "monitoring/event_file.hpp"

namespace leeway::blame {
namespace {

class Collector {
 public:
  void handle(const EventRecord& record) {
    const Event& event = record.event;
    const double now = (record.at - Instant()).seconds();
    if (const auto* parked = event.as<event::PullParked>()) {
      workers_[parked->worker].parked.insert(parked->iteration);
    } else if (const auto* evicted = event.as<event::Evicted>()) {
      State& state = workers_[evicted->worker];
      state.started = state.ended = std::nullopt;
    } else if (const auto* step = event.as<event::StepStarted>()) {
      State& state = workers_[step->worker];
      const bool waited = state.parked.erase(step->iteration) > 0;
      if (state.ended && !waited) turnarounds_.push_back(now - *state.ended);
      state.started = now;
    } else if (const auto* done = event.as<event::StepFinished>()) {
      State& state = workers_[done->worker];
      if (state.started && done->samples > 0)
        state.per_sample.push_back((now - *state.started) / static_cast<double>(done->samples));
      state.started.reset();
      state.ended = now;
    } else if (event.as<event::StageComputed>()) {
      has_stages_ = true;
    }
  }

  Expected<MeasuredSteps> steps(const std::string& path) {
    if (has_stages_)
      return Error{
          concat('"', path, "\" is of a run with pipelines, whose stages are not replayed")};
    MeasuredSteps steps;
    for (auto& [worker, state] : workers_) {
      if (worker.value() != steps.per_sample.size() || state.per_sample.empty())
        return Error{concat('"', path, "\" has no iteration of worker ", steps.per_sample.size())};
      steps.per_sample.push_back(std::move(state.per_sample));
    }
    if (steps.per_sample.empty())
      return Error{concat('"', path, "\" has no iteration of a worker")};
    if (!turnarounds_.empty()) {
      const auto middle =
          turnarounds_.begin() + static_cast<std::ptrdiff_t>(turnarounds_.size() / 2);
      std::nth_element(turnarounds_.begin(), middle, turnarounds_.end());
      steps.turnaround = *middle;
    }
    return steps;
  }

 private:
  struct State {
    std::vector<double> per_sample;
    std::optional<double> started, ended;
    std::set<Iteration> parked;  // iterations whose pulls were
  };

  bool has_stages_ = false;
  std::map<WorkerId, State> workers_;
  std::vector<double> turnarounds_;
};

}  // namespace

std::size_t MeasuredSteps::count() const {
  std::size_t count = 0;
  for (const auto& worker : per_sample) count += worker.size();
  return count;
}

double MeasuredSteps::least_per_sample() const {
  double least = per_sample.front().front();
  for (const auto& worker : per_sample) least = std::min(least, *std::ranges::min_element(worker));
  return least;
}

Expected<MeasuredSteps> read_measured_steps(const std::string& folder) {
  const auto path = events_path(folder);
  if (!path) return path.error();
  Collector collector;
  const auto read =
      read_events(*path, [&](const EventRecord& record) { collector.handle(record); });
  if (!read) return read.error();
  return collector.steps(*path);
}

}  // namespace leeway::blame
