#include "blame/slowdown.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "blame/replay.hpp"
#include "core/text.hpp"

namespace leeway::blame {
namespace {

constexpr double kSlowestShare = 0.03;  // of the ranks, as in the paper
/// A slowdown below it has no cause worth naming.
constexpr double kLeastFactor = 1.02;

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

/// The replays of all steps.
class Steps {
 public:
  /// Error: a step cannot be replayed.
  static Expected<Steps> of(const OperationTrace& trace) {
    Steps steps;
    for (auto& [step, operations] : operations_by_step(trace)) {
      auto replay = Replay::of(trace, std::move(operations));
      if (!replay) return replay.error();
      if (const auto plays = replay->play(replay->own_seconds()); !plays) return plays.error();
      steps.replays_.push_back(std::move(*replay));
    }
    steps.find_durations(trace.kinds.size());
    return steps;
  }

  std::size_t count() const { return replays_.size(); }
  double measured() const {
    double sum = 0;
    for (const Replay& replay : replays_) sum += replay.measured();
    return sum / static_cast<double>(replays_.size());
  }
  /// Mean seconds of a step in which the operations that `replaced` selects have no stragglers.
  double play(const std::function<bool(const Operation&)>& replaced) const {
    double sum = 0;
    for (const Replay& replay : replays_) sum += play(replay, replaced);
    return sum / static_cast<double>(replays_.size());
  }

 private:
  void find_durations(std::size_t kinds) {
    std::vector<std::vector<double>> alone(kinds), shared(kinds);
    for (const Replay& replay : replays_)
      for (std::size_t i = 0; i < replay.operations().size(); ++i)
        (replay.is_shared(i) ? shared : alone)[replay.operations()[i].kind].push_back(
            replay.own_seconds()[i]);
    for (std::size_t kind = 0; kind < kinds; ++kind)
      seconds_.push_back(shared[kind].empty() ? mean(alone[kind])
                                              : median(std::move(shared[kind])));
  }
  double play(const Replay& replay, const std::function<bool(const Operation&)>& replaced) const {
    std::vector<double> seconds = replay.own_seconds();
    for (std::size_t i = 0; i < seconds.size(); ++i)
      if (const Operation& operation = replay.operations()[i]; replaced(operation))
        seconds[i] = seconds_[operation.kind];
    return *replay.play(seconds);  // as it did with the measured durations
  }

  std::vector<Replay> replays_;
  std::vector<double> seconds_;  // by kind: without stragglers
};

/// Replacing durations can save more than was lost.
std::string part_text(double share) {
  return share >= 0.995 ? "all" : concat(std::lround(100 * share), '%');
}

}  // namespace

double Slowdown::share(double seconds) const {
  const double lost = replayed - without_stragglers;
  return lost <= 0 ? 0 : (replayed - seconds) / lost;
}

Expected<Slowdown> find_slowdown(const OperationTrace& trace) {
  const auto steps = Steps::of(trace);
  if (!steps) return steps.error();
  Slowdown found;
  found.steps = steps->count();
  found.measured = steps->measured();
  found.replayed = steps->play([](const Operation&) { return false; });
  found.without_stragglers = steps->play([](const Operation&) { return true; });
  if (found.without_stragglers <= 0)
    return Error{"the operations of the trace take no time; durations are in seconds"};
  std::set<Rank> ranks;
  for (const Operation& operation : trace.operations) ranks.insert(operation.rank);
  for (const Rank& rank : ranks)
    found.only_rank.emplace_back(
        rank, steps->play([&](const Operation& one) { return one.rank != rank; }));
  for (int stage = 0; stage < trace.stages; ++stage)
    found.without_stage.push_back(
        steps->play([&](const Operation& one) { return one.rank.stage == stage; }));
  for (std::size_t kind = 0; kind < trace.kinds.size(); ++kind)
    found.without_kind.push_back(
        steps->play([&](const Operation& one) { return one.kind == kind; }));
  auto by_time = found.only_rank;
  std::ranges::stable_sort(by_time, std::greater<>(), [](const auto& one) { return one.second; });
  by_time.resize(
      static_cast<std::size_t>(std::ceil(kSlowestShare * static_cast<double>(by_time.size()))));
  for (const auto& [rank, seconds] : by_time) found.slowest.push_back(rank);
  found.without_slowest = steps->play([&](const Operation& one) {
    return std::ranges::find(found.slowest, one.rank) != found.slowest.end();
  });
  return found;
}

std::string explain(const Slowdown& slowdown, const OperationTrace& trace) {
  if (slowdown.factor() < kLeastFactor) return "No stragglers: all ranks are about equally fast.";
  const double by_ranks = slowdown.share(slowdown.without_slowest);
  const auto stage = std::ranges::min_element(slowdown.without_stage);
  const double by_stage = slowdown.share(*stage);
  const auto kind = std::ranges::min_element(slowdown.without_kind);
  const std::string& kind_name =
      trace.kinds[static_cast<std::size_t>(kind - slowdown.without_kind.begin())];
  const std::string of_kind =
      concat(kind_name, " has ", part_text(slowdown.share(*kind)), " of the loss.");
  if (by_ranks >= kExplains && trace.replicas > 1) {
    const auto [replica, at] = slowdown.slowest.front();
    const bool is_one = slowdown.slowest.size() == 1;
    return concat(is_one ? "One rank explains " : "A few ranks explain ", part_text(by_ranks),
                  " of the loss", is_one ? ": replica " : ", first of all replica ", replica,
                  ", stage ", at, ". Look at its machine. ", of_kind);
  }
  if (by_stage >= kExplains && trace.stages > 1)
    return concat(
        "Stage ", stage - slowdown.without_stage.begin(), " explains ", part_text(by_stage),
        " of the loss in all replicas. Split the model so that it gets less work. ", of_kind);
  return concat(
      "The loss is scattered over ranks and stages, as with samples of unequal length or "
      "pauses of the memory management. ",
      of_kind);
}

}  // namespace leeway::blame
