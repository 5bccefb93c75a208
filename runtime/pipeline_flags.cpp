#include "runtime/pipeline_flags.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "core/limits.hpp"
#include "core/text.hpp"
#include "policies/pipeline/schedule.hpp"

namespace leeway {
namespace {

constexpr std::uint32_t kChunksOfInterleaved = 2;

std::vector<std::uint32_t> all_of(std::uint32_t stages) {
  std::vector<std::uint32_t> all(stages);
  for (std::uint32_t stage = 0; stage < stages; ++stage) all[stage] = stage;
  return all;
}

/// "all", "none" or "0,2".
Expected<std::vector<std::uint32_t>> parse_recompute(const std::string& text,
                                                     std::uint32_t stages) {
  if (text == "none") return std::vector<std::uint32_t>();
  if (text == "all") return all_of(stages);
  std::vector<std::uint32_t> out;
  std::istringstream items(text + ',');
  for (std::string item; std::getline(items, item, ',');) {
    std::uint32_t stage = 0;
    const char* const end = item.data() + item.size();
    const auto [read, error] = std::from_chars(item.data(), end, stage);
    if (error != std::errc() || read != end)
      return Error{
          concat("--recompute: \"", item, "\" is no stage; give all, none, or stages such as 0,2")};
    out.push_back(stage);
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// How many workers there are now.
Expected<std::uint32_t> count_workers(const PipelineFlags& flags,
                                      std::optional<std::uint32_t> workers, const Plan& before) {
  const std::uint32_t stages = flags.stages.value_or(before.pipeline.stages);
  if (!flags.pipelines) {
    if (workers || !flags.stages || stages == before.pipeline.stages) return before.workers;
    // A plan that has pipelines keeps as many of them.
    const std::uint32_t pipelines =
        before.pipeline.stages > 1 ? before.workers / before.pipeline.stages : 1;
    return std::max(pipelines, 1u) * stages;
  }
  const std::uint32_t pipelines = *flags.pipelines;
  const std::uint32_t most = limits::kMaxWorkers / stages;
  if (pipelines < 1 || pipelines > most)
    return Error{concat("--pipelines: ", pipelines, " of ", stages,
                        " stages are not allowed; give --pipelines 1 to ", most)};
  const std::uint32_t needed = pipelines * stages;
  if (workers && *workers != needed)
    return Error{concat("--pipelines: ", pipelines, pipelines == 1 ? " pipeline" : " pipelines",
                        " of ", stages, stages == 1 ? " stage" : " stages", " take ", needed,
                        needed == 1 ? " worker" : " workers", ", and --workers says ", *workers,
                        "; give --workers ", needed, ", or leave it out")};
  return needed;
}

}  // namespace

void add_pipeline_flags(CLI::App& app, PipelineFlags& flags) {
  const std::string pipeline = "Pipeline";
  app.add_option("--stages", flags.stages,
                 "Cut the model into this many stages, a worker each; without --workers and "
                 "--pipelines, of one pipeline")
      ->group(pipeline);
  app.add_option("--pipelines", flags.pipelines, "Pipelines side by side, of --stages workers each")
      ->group(pipeline);
  app.add_option("--schedule", flags.schedule,
                 "What a stage does next: fill_drain, 1f1b, interleaved, zero_bubble_h1, "
                 "weight_stashing or 2bw; `leeway schedule` shows them")
      ->group(pipeline);
  app.add_option("--chunks", flags.chunks,
                 "Parts of the model on each stage, for interleaved [2]; not --chunk")
      ->group(pipeline);
  app.add_option("--split", flags.split,
                 "First and last layer of each part, such as 0-3,4-7, as `leeway partition` "
                 "prints it; none cuts by what layers cost")
      ->group(pipeline);
  app.add_option("--recompute", flags.recompute,
                 "Stages that keep their inputs alone, and run forward again before backward: "
                 "all, none, or 0,2")
      ->group(pipeline);
}

Status apply_pipeline(const PipelineFlags& flags, std::optional<std::uint32_t> workers,
                      Plan& plan) {
  if (flags.stages && (*flags.stages < 1 || *flags.stages > limits::kMaxStages))
    return Error{concat("--stages: ", *flags.stages, " is not allowed; give --stages 1 to ",
                        limits::kMaxStages)};
  const char* const alone = flags.schedule    ? "--schedule"
                            : flags.pipelines ? "--pipelines"
                                              : nullptr;
  if (alone && !flags.stages && plan.pipeline.stages <= 1)
    return Error{concat(alone,
                        ": each worker trains the whole model; give --stages with it, or "
                        "leave it out")};
  const auto counted = count_workers(flags, workers, plan);
  if (!counted) return counted.error();
  plan::Pipeline& pipeline = plan.pipeline;
  const plan::Pipeline before = pipeline;
  plan.workers = *counted;
  pipeline.stages = flags.stages.value_or(before.stages);
  if (flags.schedule) {
    if (const auto found = pipeline::find_schedule(*flags.schedule); !found)
      return Error{concat("--schedule: ", found.error().text)};
    pipeline.schedule = *flags.schedule;
  }
  if (flags.chunks)
    pipeline.chunks = *flags.chunks;
  else if (flags.stages == 1u || (flags.schedule && pipeline.schedule != "interleaved"))
    pipeline.chunks = 1;
  else if (flags.schedule)
    pipeline.chunks = std::max(before.chunks, kChunksOfInterleaved);
  // A split of another number of parts goes with them; one that was asked for is checked like
  // everything else.
  if (pipeline.stages != before.stages || pipeline.chunks != before.chunks) pipeline.split.clear();
  if (flags.split) pipeline.split = *flags.split == "none" ? "" : *flags.split;
  const bool all = before.stages > 1 && before.recompute.size() == before.stages;
  if (all && pipeline.stages > 1)
    pipeline.recompute = all_of(pipeline.stages);
  else if (pipeline.stages != before.stages)
    std::erase_if(pipeline.recompute, [&](std::uint32_t stage) {
      return stage >= pipeline.stages || pipeline.stages == 1;
    });
  if (!flags.recompute) return {};
  const auto recompute = parse_recompute(*flags.recompute, pipeline.stages);
  if (!recompute) return recompute.error();
  pipeline.recompute = *recompute;
  return {};
}

}  // namespace leeway
