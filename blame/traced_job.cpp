#include "blame/traced_job.hpp"

#include <filesystem>
#include <map>

#include "blame/replay.hpp"
#include "core/text.hpp"

namespace leeway::blame {
namespace {

using OperationsOfSteps = std::map<std::int64_t, std::vector<Operation>>;

Status add_stages(TracedJob& job, const OperationTrace& trace, const OperationsOfSteps& steps) {
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

Status add_replicas(TracedJob& job, const OperationTrace& trace, const OperationsOfSteps& steps) {
  job.of_replicas.resize(job.replicas);
  for (const auto& [step, operations] : steps) {
    const auto replay = Replay::of(trace, operations);
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

}  // namespace

Expected<TracedJob> read_traced_job(const std::string& path, std::string_view advice) {
  const auto in_file = [&](const Error& error) { return Error{concat(path, ": ", error.text)}; };
  const auto trace = read_operations(path, advice);
  if (!trace) return trace.error();
  const auto slowdown = find_slowdown(*trace);
  if (!slowdown) return in_file(slowdown.error());
  TracedJob job{.name = std::filesystem::path(path).filename().string(),
                .replicas = static_cast<std::uint32_t>(trace->replicas),
                .stages = static_cast<std::uint32_t>(trace->stages),
                .operations = trace->operations.size(),
                .slowdown = *slowdown,
                .explanation = explain(*slowdown, *trace)};
  const OperationsOfSteps steps = operations_by_step(*trace);
  auto added = add_stages(job, *trace, steps);
  if (added) added = add_replicas(job, *trace, steps);
  if (!added) return in_file(added.error());
  return job;
}

}  // namespace leeway::blame
