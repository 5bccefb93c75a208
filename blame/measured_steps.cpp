#include "blame/measured_steps.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "blame/event_lines.hpp"
#include "core/text.hpp"

namespace leeway::blame {
namespace {

class Collector {
 public:
  void handle(const nlohmann::json& event) {
    const std::string& name = event.at("event").get_ref<const std::string&>();
    if (name == "stage_computed") has_stages_ = true;
    const bool starts = name == "step_started", ends = name == "step_finished";
    if (!starts && !ends && name != "pull_parked" && name != "evicted") return;
    const auto worker = event.at("worker").get<std::size_t>();
    const double now = event.at("ns").get<double>() * kSecondsPerNs;
    State& state = workers_[worker];
    if (name == "pull_parked") state.parked.insert(event.at("iteration").get<std::int64_t>());
    if (name == "evicted") state.started = state.ended = std::nullopt;
    if (starts) {
      const bool waited = state.parked.erase(event.at("iteration").get<std::int64_t>()) > 0;
      if (state.ended && !waited) turnarounds_.push_back(now - *state.ended);
      state.started = now;
    }
    if (!ends) return;
    const auto samples = event.at("samples").get<double>();
    if (state.started && samples > 0) state.per_sample.push_back((now - *state.started) / samples);
    state.started.reset();
    state.ended = now;
  }

  Expected<MeasuredSteps> steps(const std::string& path) {
    if (has_stages_)
      return Error{
          concat('"', path, "\" is of a run with pipelines, whose stages are not replayed")};
    MeasuredSteps steps;
    for (auto& [worker, state] : workers_) {
      if (worker != steps.per_sample.size() || state.per_sample.empty())
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
    std::set<std::int64_t> parked;  // iterations whose pulls were
  };

  bool has_stages_ = false;
  std::map<std::size_t, State> workers_;
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
  const std::string path = folder + "/events.jsonl";
  Collector collector;
  if (const auto read = read_events(path, [&](const auto& event) { collector.handle(event); });
      !read)
    return read.error();
  return collector.steps(path);
}

}  // namespace leeway::blame
