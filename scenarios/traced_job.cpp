#include "traced_job.hpp"

#include <leeway/blame/replay.hpp>
#include <leeway/core/text.hpp>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>

namespace leeway::study {
namespace {

constexpr const char* kAdvice =
    "give the traces of the artifact of \"Understanding Stragglers in Large Model Training Using "
    "What-if Analysis\" (github.com/ByteDance-Seed/StragglerAnalysis) as CSV files";
/// Stragglers stretch computations at least by this factor, so that a shard's updates, which
/// nothing stretches, take next to no time.
constexpr double kLeastFactor = 1000;
/// GB/s of the simulated memories: durations contain all memory traffic.
constexpr double kUnlimited = 1e9;

using Steps = std::map<std::int64_t, std::vector<blame::Operation>>;

Status add_stages(TracedJob& job, const blame::OperationTrace& trace, const Steps& steps) {
  job.of_stages.resize(job.replicas * job.stages);
  for (const auto& [step, operations] : steps) {
    std::vector<double> seconds(job.of_stages.size());
    std::vector<std::uint32_t> forwards(job.of_stages.size());
    for (const auto& operation : operations) {
      const std::size_t rank =
          static_cast<std::size_t>(operation.rank.replica * trace.stages + operation.rank.stage);
      const std::string& kind = trace.kinds[operation.kind];
      if (kind == "forward-compute") ++forwards[rank];
      if (kind == "forward-compute" || kind == "backward-compute")
        seconds[rank] += operation.duration;
    }
    if (job.micro_batches == 0) job.micro_batches = forwards.front();
    for (std::size_t rank = 0; rank < seconds.size(); ++rank) {
      const std::string where =
          concat("step ", step, ": replica ", rank / job.stages, ", stage ", rank % job.stages);
      if (forwards[rank] == 0 || seconds[rank] <= 0)
        return Error{concat(where,
                            " has no computation that takes time; give a trace with the "
                            "operations forward-compute and backward-compute")};
      if (forwards[rank] != job.micro_batches)
        return Error{concat(where, " has ", forwards[rank], " forward computations, the first has ",
                            job.micro_batches,
                            "; give a job whose pipelines have equally many micro-batches")};
      job.of_stages[rank].push_back(seconds[rank]);
    }
  }
  return {};
}

Status add_replicas(TracedJob& job, const blame::OperationTrace& trace, const Steps& steps) {
  job.of_replicas.resize(job.replicas);
  for (const auto& [step, operations] : steps) {
    const auto replay = blame::Replay::of(trace, operations);
    if (!replay) return replay.error();
    for (std::uint32_t replica = 0; replica < job.replicas; ++replica) {
      auto seconds = replay->own_seconds();
      for (std::size_t i = 0; i < seconds.size(); ++i)
        if (replay->operations()[i].rank.replica != static_cast<int>(replica)) seconds[i] = 0;
      const auto played = replay->play(seconds);
      if (!played) return played.error();
      job.of_replicas[replica].push_back(*played);
    }
  }
  return {};
}

/// Seconds of an iteration of each worker without stragglers.
Expected<std::vector<double>> usual_seconds(Plan plan) {
  plan.consistency = bsp();
  plan.balance = plan::Balance::equal;
  plan.pipeline.schedule = "1f1b";
  plan.simulated->cost_only = true;
  plan.stop = {.iterations = 2 * plan.workers};
  plan.evaluate_every = 0;
  if (const auto valid = validate(plan); !valid) return valid.error();
  const Result result = run(plan, {.quiet = true});
  if (!result.ok()) return Error{result.error};
  std::vector<double> seconds;
  for (const auto& worker : result.totals.workers)
    seconds.push_back(worker.compute.seconds() / static_cast<double>(worker.iterations));
  return seconds;
}

}  // namespace

Expected<TracedJob> read_job(const std::string& path) {
  const auto in_file = [&](const Error& error) { return Error{concat(path, ": ", error.text)}; };
  const auto trace = blame::read_operations(path, kAdvice);
  if (!trace) return trace.error();
  const auto slowdown = blame::find_slowdown(*trace);
  if (!slowdown) return in_file(slowdown.error());
  TracedJob job{.name = std::filesystem::path(path).filename().string(),
                .replicas = static_cast<std::uint32_t>(trace->replicas),
                .stages = static_cast<std::uint32_t>(trace->stages),
                .operations = trace->operations.size(),
                .slowdown = *slowdown,
                .explanation = explain(*slowdown, *trace)};
  const Steps steps = operations_by_step(*trace);
  auto added = add_stages(job, *trace, steps);
  if (added) added = add_replicas(job, *trace, steps);
  if (!added) return in_file(added.error());
  return job;
}

Status replay(Plan& plan, const std::vector<Durations>& seconds) {
  plan::World& world = *plan.simulated;
  world.nodes = plan::World::Nodes::each;
  world.memory = kUnlimited;
  world.noise = world.jitter = world.link = 0;
  world.latency_us = world.local_latency_us = 0;
  const auto usual = usual_seconds(plan);
  if (!usual) return usual.error();
  double least = std::numeric_limits<double>::infinity();  // factor
  for (std::size_t worker = 0; worker < seconds.size(); ++worker)
    least = std::min(least, std::ranges::min(seconds[worker]) / (*usual)[worker]);
  const double faster = kLeastFactor / least;  // than now
  world.speed *= faster;
  for (std::uint32_t worker = 0; worker < seconds.size(); ++worker) {
    std::vector<double> factors;
    for (const double one : seconds[worker]) factors.push_back(one / (*usual)[worker] * faster);
    plan.stragglers.push_back(slow_by(worker, std::move(factors)));
  }
  return {};
}

}  // namespace leeway::study
