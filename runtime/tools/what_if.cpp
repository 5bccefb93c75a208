#include "runtime/tools/what_if.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "blame/measured_steps.hpp"
#include "blame/result_file.hpp"
#include "core/check.hpp"
#include "core/text.hpp"
#include "policies/automatic_plan.hpp"
#include "policies/consistency/consistency.hpp"
#include "runtime/scenario.hpp"

namespace leeway {
namespace {

constexpr std::size_t kMostFactors = 65536;  // of plan::Repeated
/// GB/s of the simulated memories: the measured durations contain all memory traffic.
constexpr double kUnlimited = 1e9;

Expected<RunTimes> measured_times(const std::string& folder) {
  RunTimes times;
  const auto read = blame::read_result(folder, [&](const nlohmann::json& result) {
    times.seconds = result.at("seconds");
    times.samples_per_second = result.at("samples_per_second");
    times.parked_pulls = result.at("parked_pulls");
    times.waiting = blame::worker_seconds(result).waiting_share();
    if (result.contains("test_loss") && result["test_loss"].is_number())
      times.test_loss = result["test_loss"];
  });
  if (!read) return read.error();
  return times;
}

Expected<Result> simulate(const Plan& plan) {
  if (const auto valid = validate(plan); !valid) return valid.error();
  RunOptions options;
  options.quiet = true;
  Result result = run(plan, options);
  if (!result.ok()) return Error{result.error};
  return result;
}

Expected<RunTimes> simulated_times(const Plan& plan) {
  const auto result = simulate(plan);
  if (!result) return result.error();
  blame::WorkerSeconds seconds;
  for (const WorkerTotals& worker : result->totals.workers) {
    seconds.compute += worker.compute.seconds();
    seconds.wait += worker.wait.seconds();
  }
  RunTimes times{.seconds = result->seconds,
                 .samples_per_second = result->samples_per_second,
                 .waiting = seconds.waiting_share(),
                 .parked_pulls = result->parked_pulls};
  if (result->learned()) times.test_loss = result->test_loss;
  return times;
}

/// The plan of the run in a world whose computations are measured ones. `speed`: GFLOP/s.
Plan simulated_plan(const Plan& plan, const blame::MeasuredSteps& steps, double speed,
                    bool gradients) {
  Plan simulated = plan;
  const double latency = steps.turnaround / 2 * 1e6;
  simulated.simulated = plan::World{.nodes = plan::World::Nodes::each,
                                    .speed = speed,
                                    .memory = kUnlimited,
                                    .noise = 0,
                                    .latency_us = latency,
                                    .local_latency_us = latency,
                                    .jitter = 0,
                                    .link = 0,
                                    .cost_only = !gradients};
  simulated.stragglers.clear();
  simulated.faults.clear();
  simulated.checkpoints = {};
  simulated.device = "cpu";
  simulated.stop.iterations = steps.count();
  simulated.stop.accuracy = simulated.stop.seconds = 0;
  if (!gradients) simulated.evaluate_every = 0;
  return simulated;
}

/// Rounds have no older gradients, so a policy for these is left out.
void set_consistency(Plan& plan, const plan::Consistency& consistency) {
  plan.consistency = consistency;
  if (make_consistency(consistency)->by_rounds()) plan.delay_policy = plan::PlainPush{};
}

/// The GFLOP/s with which a sample takes the least measured time.
Expected<double> speed_for(const Plan& plan, const blame::MeasuredSteps& steps) {
  Plan one = simulated_plan(plan, steps, 1, false);
  one.workers = one.shards = 1;
  set_consistency(one, plan::Bsp{});
  one.prefetch = false;
  one.stop.iterations = 2;
  const auto result = simulate(one);
  if (!result) return result.error();
  const WorkerTotals& worker = result->totals.workers.front();
  const double per_sample = worker.compute.seconds() / static_cast<double>(worker.samples);
  return per_sample / steps.least_per_sample();
}

/// The worker whose iterations take the median time.
std::size_t median_worker(const blame::MeasuredSteps& steps) {
  std::vector<std::size_t> workers(steps.per_sample.size());
  std::iota(workers.begin(), workers.end(), 0);
  const auto middle = workers.begin() + static_cast<std::ptrdiff_t>((workers.size() - 1) / 2);
  std::ranges::nth_element(workers, middle, {}, [&](std::size_t worker) {
    const auto& times = steps.per_sample[worker];
    return std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  });
  return *middle;
}

/// Gives each worker the measured durations, relative to the shortest. Workers beyond the measured
/// ones repeat them.
void add_durations(Plan& plan, const blame::MeasuredSteps& steps,
                   const std::vector<std::uint32_t>& without_stragglers) {
  const double least = steps.least_per_sample();
  const std::size_t median = median_worker(steps);
  for (std::uint32_t worker = 0; worker < plan.workers; ++worker) {
    const bool is_replaced =
        std::ranges::find(without_stragglers, worker) != without_stragglers.end();
    const auto& times = steps.per_sample[is_replaced ? median : worker % steps.per_sample.size()];
    plan::Repeated repeated;
    for (std::size_t i = 0; i < std::min(times.size(), kMostFactors); ++i)
      repeated.factors.push_back(times[i] / least);
    plan.stragglers.push_back({.worker = worker, .kind = repeated});
  }
}

void change(Plan& plan, const WhatIfOptions& options) {
  if (options.consistency) set_consistency(plan, *options.consistency);
  if (options.balance) plan.balance = *options.balance;
  if (options.workers) plan.workers = *options.workers;
  if (options.shards) plan.shards = *options.shards;
  if (options.prefetch) plan.prefetch = true;
  if (options.link) plan.simulated->link = *options.link;
}

Status check(const WhatIfOptions& options, const Plan& plan, const blame::MeasuredSteps& steps) {
  if (needs_program(plan) && options.gradients)
    return Error{concat(options.folder, ": the data or layers of ", plan.name,
                        " are part of its program; leave out --gradients")};
  Plan changed = plan;
  if (options.consistency) changed.consistency = *options.consistency;
  if (options.balance) changed.balance = *options.balance;
  if (const auto fits = check_implied({.balance = options.balance}, changed); !fits) return fits;
  const std::size_t workers =
      std::min<std::size_t>(steps.per_sample.size(), options.workers.value_or(plan.workers));
  for (const std::uint32_t worker : options.without_stragglers)
    if (worker >= workers)
      return Error{concat("--without-straggler: worker", worker, " is not one of the ", workers,
                          " workers of the run and of the simulation")};
  return {};
}

}  // namespace

Expected<std::vector<WhatIf>> what_if(const std::vector<WhatIfOptions>& all) {
  LW_CHECK(!all.empty());
  const std::string& folder = all.front().folder;
  const bool gradients = all.front().gradients;
  auto plan = plan_from_file(folder + "/plan.json");
  if (!plan) return plan.error();
  plan->balance = with_automatic_settings(*plan).balance;  // also under another policy
  const auto steps = blame::read_measured_steps(folder);
  if (!steps) return steps.error();
  for (const WhatIfOptions& options : all)
    if (const auto checked = check(options, *plan, *steps); !checked) return checked.error();
  const auto measured = measured_times(folder);
  if (!measured) return measured.error();
  const auto speed = speed_for(*plan, *steps);
  if (!speed) return speed.error();
  Plan as_it_ran = simulated_plan(*plan, *steps, *speed, gradients);
  const Plan unchanged = as_it_ran;
  add_durations(as_it_ran, *steps, {});
  const auto as_it_ran_times = simulated_times(as_it_ran);
  if (!as_it_ran_times) return as_it_ran_times.error();
  std::vector<WhatIf> answers;
  for (const WhatIfOptions& options : all) {
    WhatIf answer{.measured = *measured, .as_it_ran = *as_it_ran_times, .plan = unchanged};
    change(answer.plan, options);
    add_durations(answer.plan, *steps, options.without_stragglers);
    const auto changed = simulated_times(answer.plan);
    if (!changed) return changed.error();
    answer.changed = *changed;
    answers.push_back(std::move(answer));
  }
  return answers;
}

Expected<WhatIf> what_if(const WhatIfOptions& options) {
  auto answers = what_if(std::vector{options});
  if (!answers) return answers.error();
  return std::move(answers->front());
}

}  // namespace leeway
