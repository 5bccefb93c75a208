#include "runtime/tools/what_if.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "blame/measured_steps.hpp"
#include "blame/result_file.hpp"
#include "blame/traced_job.hpp"
#include "core/check.hpp"
#include "core/text.hpp"
#include "plan/groups.hpp"
#include "policies/automatic_plan.hpp"
#include "policies/consistency/consistency.hpp"
#include "policies/pipeline/schedule.hpp"
#include "runtime/flags/pipeline.hpp"
#include "runtime/scenario.hpp"
#include "runtime/tools/replay.hpp"
#include "runtime/words.hpp"

namespace leeway {
namespace {

/// The fewest rounds that a trace is replayed for: under a bound, a simulation needs some to reach
/// its usual speed.
constexpr std::size_t kTraceRounds = 50;
/// Outputs of each layer of the model that a trace is replayed with: the trace names none.
constexpr std::int64_t kTraceWidth = 4;

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

/// A run to simulate, with its own times.
struct Measured {
  Plan plan;  // simulated, without stragglers
  std::vector<std::vector<double>> per_sample;
  RunTimes times;
  // Set only for a trace:
  double samples_per_step = 0;
  bool whole_replicas = false;
  std::string shape;  // "2 replicas of 4 stages with 8 micro-batches"
};

Expected<Measured> read_run(const WhatIfOptions& options) {
  auto plan = plan_from_file(options.folder + "/plan.json");
  if (!plan) return plan.error();
  if (needs_program(*plan) && options.gradients)
    return Error{concat(options.folder, ": the data or layers of ", plan->name,
                        " are part of its program; leave out --gradients")};
  if (const std::uint32_t group = workers_per_group(*plan); group > 1)
    plan->aggregate = plan::GroupsOf{group};  // the simulated world has other nodes
  auto steps = blame::read_measured_steps(options.folder, plan->pipeline.stages);
  if (!steps) return steps.error();
  auto times = measured_times(options.folder);
  if (!times) return times.error();
  plan->balance = with_automatic_settings(*plan).balance;  // also under another policy
  plan->simulated = replay_world();
  plan->simulated->latency_us = plan->simulated->local_latency_us = steps->latency * 1e6;
  plan->simulated->cost_only = !options.gradients;
  plan->stragglers.clear();
  plan->faults.clear();
  plan->checkpoints = {};
  plan->device = "cpu";
  // Measured times contain all waiting for cores.
  plan->simulated->workers_per_node = plan->simulated->cores = workers_per_group(*plan);
  plan->stop.iterations = steps->iterations(workers_per_member(*plan));
  plan->stop.accuracy = plan->stop.seconds = 0;
  if (!options.gradients) plan->evaluate_every = 0;
  return Measured{std::move(*plan), std::move(steps->per_sample), *times};
}

// ---- traces of other systems ----

/// A pipeline cannot abandon an iteration, so a policy that drops pushes has a worker for each
/// replica.
bool has_whole_replicas(const WhatIfOptions& options) {
  return options.consistency && make_consistency(*options.consistency)->round_size().drops();
}

/// The model and the data do not matter: their costs are replaced by the measured times.
Plan plan_of(const blame::TracedJob& job, bool whole_replicas, std::size_t chunks) {
  Plan plan;
  plan.name = job.name;
  plan.model.assign(chunks * job.stages, plan::Linear{kTraceWidth});
  plan.consistency = bsp();
  plan.pipeline.stages = whole_replicas ? 1 : job.stages;
  plan.pipeline.schedule = "1f1b";
  plan.workers = job.replicas * plan.pipeline.stages;
  plan.shards = 1;
  plan.micro_batches = whole_replicas ? 1 : job.micro_batches;
  plan.batch = job.micro_batches;
  const std::size_t rounds = std::max(job.of_stages.front().size(), kTraceRounds);
  const auto samples = static_cast<std::uint32_t>(rounds * job.replicas * plan.batch);
  plan.data = plan::Synthetic{samples, 1, plan::Clusters{kTraceWidth, kTraceWidth, 1}};
  plan.stop.epochs = 1;
  plan.evaluate_every = 0;
  plan.simulated = replay_world();
  return plan;
}

Status check_trace(const WhatIfOptions& options) {
  for (const auto& [flag, is_given] : {std::pair{"--workers", options.workers.has_value()},
                                       {"--shards", options.shards.has_value()},
                                       {"--link", options.link.has_value()},
                                       {"--prefetch", options.prefetch},
                                       {"--gradients", options.gradients}})
    if (is_given)
      return Error{concat(flag,
                          ": a trace has the times of its own ranks, and no model; leave it "
                          "out")};
  return {};
}

/// `chunks`: of the model on each stage, for the schedules to come.
Expected<Measured> read_trace(const WhatIfOptions& options, std::size_t chunks) {
  const auto job = blame::read_traced_job(options.import, "give --import a CSV file of operations");
  if (!job) return job.error();
  const bool whole = has_whole_replicas(options);
  if (!options.without_stragglers.empty() && job->replicas < 2)
    return Error{
        "--without-straggler: the trace has one replica; its stages have no other of their "
        "kind"};
  Measured measured{.plan = plan_of(*job, whole, chunks)};
  double computed = 0, count = 0;  // of all ranks
  for (const blame::Durations& seconds : job->of_stages) {
    computed = std::accumulate(seconds.begin(), seconds.end(), computed);
    count += static_cast<double>(seconds.size());
  }
  const double step = job->slowdown.measured;
  measured.per_sample = whole ? job->of_replicas : job->of_stages;
  for (blame::Durations& seconds : measured.per_sample)
    for (double& one : seconds) one /= measured.plan.batch;
  measured.samples_per_step = static_cast<double>(job->replicas) * measured.plan.batch;
  measured.whole_replicas = whole && job->stages > 1;
  measured.shape = concat(job->replicas, " replicas of ", job->stages, " stages with ",
                          job->micro_batches, " micro-batches");
  const double steps = measured.plan.stop.epochs *
                       std::get<plan::Synthetic>(measured.plan.data).samples /
                       measured.samples_per_step;
  measured.times = {.seconds = step * steps,
                    .samples_per_second = measured.samples_per_step / step,
                    .waiting = 1 - computed / (count * step)};
  return measured;
}

// ---- changes ----

/// Rounds have no older gradients, so a policy for these is left out. Without rounds, there are no
/// host groups.
void set_consistency(Plan& plan, const plan::Consistency& consistency) {
  plan.consistency = consistency;
  if (make_consistency(consistency)->by_rounds()) plan.delay_policy = plan::PlainPush{};
  if (!std::holds_alternative<plan::Bsp>(consistency)) plan.aggregate = plan::NoGroups{};
}

Status change(Plan& plan, const WhatIfOptions& options) {
  if (options.consistency) set_consistency(plan, *options.consistency);
  if (options.balance) plan.balance = *options.balance;
  if (options.workers) plan.workers = *options.workers;
  if (options.shards) plan.shards = *options.shards;
  if (options.prefetch) plan.prefetch = true;
  if (options.link) plan.simulated->link = *options.link;
  if (!options.schedule) return {};
  return apply_pipeline({.schedule = options.schedule}, std::nullopt, plan);
}

Status check(const WhatIfOptions& options, const Measured& measured) {
  const Plan& plan = measured.plan;
  if (options.schedule && plan.pipeline.stages == 1)
    return Error{
        has_whole_replicas(options)
            ? "--schedule: with a policy that drops pushes, each replica of a trace is one "
              "worker; leave it out"
            : "--schedule: the run has no pipelines; leave it out"};
  Plan changed = plan;
  if (options.consistency) changed.consistency = *options.consistency;
  if (options.balance) changed.balance = *options.balance;
  if (const auto fits = check_implied({.balance = options.balance}, changed); !fits) return fits;
  const std::size_t workers =
      std::min<std::size_t>(measured.per_sample.size(), options.workers.value_or(plan.workers));
  for (const std::uint32_t worker : options.without_stragglers)
    if (worker >= workers)
      return Error{concat("--without-straggler: worker", worker, " is not one of the ", workers,
                          measured.whole_replicas
                              ? " workers: with a policy that drops pushes, these are the replicas"
                              : " workers of the run and of the simulation")};
  return {};
}

}  // namespace

Expected<std::vector<WhatIf>> what_if(const std::vector<WhatIfOptions>& all) {
  LW_CHECK(!all.empty());
  const WhatIfOptions& first = all.front();
  int chunks = 1;
  if (!first.import.empty())
    for (const WhatIfOptions& options : all) {
      chunks = std::max(chunks, pipeline::usual_chunks(options.schedule.value_or("1f1b")));
      LW_CHECK(has_whole_replicas(options) == has_whole_replicas(first));
      if (const auto fits = check_trace(options); !fits) return fits.error();
    }
  const auto measured =
      first.import.empty() ? read_run(first) : read_trace(first, static_cast<std::size_t>(chunks));
  if (!measured) return measured.error();
  for (const WhatIfOptions& options : all)
    if (const auto checked = check(options, *measured); !checked) return checked.error();
  const auto replay = Replay::of(measured->plan, measured->per_sample);
  if (!replay) return replay.error();
  Plan as_it_ran = measured->plan;
  replay->apply(as_it_ran);
  const auto as_it_ran_times = simulated_times(as_it_ran);
  if (!as_it_ran_times) return as_it_ran_times.error();
  std::vector<WhatIf> answers;
  for (const WhatIfOptions& options : all) {
    WhatIf answer{.measured = measured->times,
                  .as_it_ran = *as_it_ran_times,
                  .plan = measured->plan,
                  .samples_per_step = measured->samples_per_step,
                  .whole_replicas = measured->whole_replicas};
    if (const auto changed = change(answer.plan, options); !changed) return changed.error();
    replay->apply(answer.plan, options.without_stragglers);
    const auto times = simulated_times(answer.plan);
    if (!times && !measured->shape.empty())
      return Error{concat("the trace has ", measured->shape, ", which stay: ", times.error().text)};
    if (!times) return times.error();
    answer.changed = *times;
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
