#include "runtime/tools/replay.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "core/text.hpp"
#include "policies/pipeline/schedule.hpp"
#include "runtime/scenario.hpp"
#include "runtime/words.hpp"

namespace leeway {
namespace {

constexpr std::size_t kMostFactors = 65536;  // of plan::Repeated
/// Stragglers stretch computations at least by this factor, or by as much as they may, so that a
/// shard's updates, which nothing stretches, take next to no time.
constexpr double kLeastFactor = 1000;
/// GB/s of the simulated memories: measured times contain all memory traffic.
constexpr double kUnlimited = 1e9;

/// Seconds per sample of each worker without stragglers.
Expected<std::vector<double>> usual_times(Plan plan) {
  plan.consistency = bsp();
  plan.delay_policy = plan::PlainPush{};
  plan.balance = plan::Balance::equal;
  plan.prefetch = false;
  plan.stragglers.clear();
  plan.simulated->cost_only = true;
  // Stages take the same time, whenever they compute.
  const auto schedule = pipeline::find_schedule(plan.pipeline.schedule);
  if (schedule && (*schedule)->asynchronous()) plan.pipeline.schedule = "1f1b";
  plan.stop = {.epochs = plan.stop.epochs, .iterations = 2 * plan.workers};
  plan.evaluate_every = 0;
  if (const auto valid = validate(plan); !valid) return valid.error();
  const Result result = run(plan, {.quiet = true});
  if (!result.ok()) return Error{result.error};
  const auto& totals = result.totals.workers;
  std::vector<double> times;
  for (std::size_t worker = 0; worker < totals.size(); ++worker) {
    // The stage that knows the losses counts the samples of its pipeline.
    const std::size_t first = worker - worker % plan.pipeline.stages;
    std::uint64_t samples = 0;
    for (std::size_t stage = 0; stage < plan.pipeline.stages; ++stage)
      samples = std::max(samples, totals[first + stage].samples);
    if (samples == 0 || totals[worker].compute.ns == 0)
      return Error{concat("worker ", worker, " of the simulation computes nothing")};
    times.push_back(totals[worker].compute.seconds() / static_cast<double>(samples));
  }
  return times;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

plan::World replay_world() {
  return {.nodes = plan::World::Nodes::each,
          .memory = kUnlimited,
          .noise = 0,
          .latency_us = 0,
          .local_latency_us = 0,
          .jitter = 0,
          .link = 0,
          .cost_only = true};
}

Expected<Replay> Replay::of(const Plan& plan, const std::vector<std::vector<double>>& per_sample) {
  const auto usual = usual_times(plan);
  if (!usual) return usual.error();
  Replay replay;
  replay.stages_ = plan.pipeline.stages;
  double least = std::numeric_limits<double>::infinity(), greatest = 0;
  std::size_t slowest = 0;
  for (std::size_t worker = 0; worker < per_sample.size(); ++worker) {
    auto& factors = replay.factors_.emplace_back();
    const auto& times = per_sample[worker];
    for (std::size_t i = 0; i < std::min(times.size(), kMostFactors); ++i)
      factors.push_back(times[i] / (*usual)[worker]);
    const auto [low, high] = std::ranges::minmax(factors);
    least = std::min(least, low);
    if (high > greatest) slowest = worker;
    greatest = std::max(greatest, high);
  }
  if (greatest > least * plan::kMaxSlowdown)
    return Error{concat("an iteration of worker ", slowest, " takes ", greatest / least,
                        " times as long as the fastest of all; a simulation can have ",
                        plan::kMaxSlowdown, " times: leave out the run's pauses")};
  replay.faster_ = std::min(kLeastFactor, plan::kMaxSlowdown * least / greatest) / least;
  for (auto& factors : replay.factors_)
    for (double& factor : factors) factor *= replay.faster_;
  return replay;
}

std::size_t Replay::median_like(std::size_t worker) const {
  std::vector<std::pair<double, std::size_t>> candidates;
  const bool by_stage = factors_.size() > stages_;
  for (std::size_t other = 0; other < factors_.size(); ++other)
    if (!by_stage || other % stages_ == worker % stages_)
      candidates.emplace_back(mean(factors_[other]), other);
  const auto middle = candidates.begin() + static_cast<std::ptrdiff_t>((candidates.size() - 1) / 2);
  std::ranges::nth_element(candidates, middle);
  return middle->second;
}

void Replay::apply(Plan& plan, const std::vector<std::uint32_t>& without_stragglers) const {
  plan.simulated->speed *= faster_;
  plan.stragglers.clear();
  for (std::uint32_t worker = 0; worker < plan.workers; ++worker) {
    std::size_t like = worker % factors_.size();
    if (std::ranges::find(without_stragglers, worker) != without_stragglers.end())
      like = median_like(like);
    plan.stragglers.push_back(slow_by(worker, factors_[like]));
  }
}

}  // namespace leeway
