#include "runtime/flags/pipeline.hpp"

#include <algorithm>
#include <iostream>

#include "core/limits.hpp"
#include "core/number.hpp"
#include "core/text.hpp"
#include "plan/settings.hpp"
#include "policies/pipeline/schedule.hpp"
#include "runtime/flags/option.hpp"

namespace leeway {
namespace {

std::vector<std::uint32_t> all_stages(std::uint32_t stages) {
  std::vector<std::uint32_t> all(stages);
  for (std::uint32_t stage = 0; stage < stages; ++stage) all[stage] = stage;
  return all;
}

/// "all", "none" or "0,2".
Expected<std::vector<std::uint32_t>> parse_recompute(const std::string& text,
                                                     std::uint32_t stages) {
  if (text == "none") return std::vector<std::uint32_t>();
  if (text == "all") return all_stages(stages);
  std::vector<std::uint32_t> out;
  for (const std::string& item : comma_separated(text)) {
    const auto stage = parse_number<std::uint32_t>(item);
    if (!stage)
      return Error{concat("--recompute: \"", item,
                          "\" is not a stage; give all, none, or stages such as 0,2")};
    out.push_back(*stage);
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string join_numbers(const std::vector<std::uint32_t>& numbers) {
  std::vector<std::string> texts;
  for (const auto number : numbers) texts.push_back(concat(number));
  return join(texts, ",");
}

/// Chunks of each schedule: "1; 2 for interleaved".
std::string chunks_text(const plan::Pipeline& planned) {
  std::string text = concat(planned.chunks);
  for (const auto& entry : pipeline::catalogue())
    if (entry.chunks > 1 && entry.name != planned.schedule)
      text += concat("; ", entry.chunks, " for ", entry.name);
  return text;
}

/// Whether the plan's schedule supports its number of chunks per stage.
bool keeps_chunks(const Plan& plan) {
  return bool(pipeline::validate({.schedule = plan.pipeline.schedule,
                                  .stages = static_cast<int>(plan.pipeline.stages),
                                  .micro_batches = static_cast<int>(plan.micro_batches),
                                  .chunks = static_cast<int>(plan.pipeline.chunks)}));
}

/// The number of workers after the flags are applied.
Expected<std::uint32_t> count_workers(const PipelineFlags& flags,
                                      std::optional<std::uint32_t> workers, const Plan& before) {
  const std::uint32_t stages = flags.stages.value_or(before.pipeline.stages);
  if (!flags.pipelines) {
    if (workers || !flags.stages || stages == before.pipeline.stages) return before.workers;
    // The number of pipelines does not change.
    const std::uint32_t pipelines =
        before.pipeline.stages > 1 ? before.workers / before.pipeline.stages : 1;
    return std::max(pipelines, 1u) * stages;
  }
  const std::uint32_t pipelines = *flags.pipelines;
  const std::uint32_t max_pipelines = limits::kMaxWorkers / stages;
  if (pipelines < 1 || pipelines > max_pipelines)
    return Error{concat("--pipelines: ", pipelines, " of ", stages,
                        " stages are not allowed; give --pipelines 1 to ", max_pipelines)};
  const std::uint32_t needed = pipelines * stages;
  if (workers && *workers != needed)
    return Error{concat("--pipelines: ", pipelines, pipelines == 1 ? " pipeline" : " pipelines",
                        " of ", stages, stages == 1 ? " stage" : " stages", " need ", needed,
                        needed == 1 ? " worker" : " workers", ", but --workers is ", *workers,
                        "; give --workers ", needed, ", or leave it out")};
  return needed;
}

}  // namespace

void add_pipeline_flags(CLI::App& app, PipelineFlags& flags, const Plan& plan) {
  const plan::Pipeline& planned = plan.pipeline;
  const auto add = [&](const std::string& flag, auto& target, const std::string& help,
                       const auto& value, const std::string& allowed = "") {
    add_value(app, flag, target, help, allowed)->group("Pipeline")->default_str(concat(value));
  };
  const auto setting = [&](std::string_view key, auto& target, const auto& value) {
    const plan::Setting& found = plan::setting(key);
    add(found.flag, target, plan::help_of_flag(found), value, found.range);
  };
  setting("pipeline.stages", flags.stages, planned.stages);
  add("--pipelines", flags.pipelines, "Number of pipelines, of --stages workers each",
      planned.stages > 1 ? plan.workers / planned.stages : 1);
  setting("pipeline.schedule", flags.schedule, planned.schedule);
  setting("pipeline.chunks", flags.chunks, chunks_text(planned));
  setting("pipeline.split", flags.split, planned.split.empty() ? "none" : planned.split);
  setting("pipeline.recompute", flags.recompute,
          planned.recompute.empty() ? "none" : join_numbers(planned.recompute));
  app.add_flag("--predict-weights", flags.predict_weights,
               plan::help_of_flag(plan::setting("pipeline.predict_weights")))
      ->group("Pipeline");
}

Status apply_pipeline(const PipelineFlags& flags, std::optional<std::uint32_t> workers,
                      Plan& plan) {
  if (flags.stages && (*flags.stages < 1 || *flags.stages > limits::kMaxStages))
    return Error{concat("--stages: ", *flags.stages, " is not allowed; give --stages 1 to ",
                        limits::kMaxStages)};
  const char* const needs_stages = flags.schedule    ? "--schedule"
                                   : flags.pipelines ? "--pipelines"
                                                     : nullptr;
  if (needs_stages && !flags.stages && plan.pipeline.stages <= 1)
    return Error{concat(needs_stages,
                        ": each worker trains the whole model; add --stages, or leave it out")};
  const auto new_workers = count_workers(flags, workers, plan);
  if (!new_workers) return new_workers.error();
  plan::Pipeline& piped = plan.pipeline;
  const plan::Pipeline before = piped;
  plan.workers = *new_workers;
  piped.stages = flags.stages.value_or(before.stages);
  if (flags.schedule) {
    if (const auto found = pipeline::find_schedule(*flags.schedule); !found)
      return Error{concat("--schedule: ", found.error().text)};
    piped.schedule = *flags.schedule;
  }
  if (const auto note = pipeline::renaming_note(piped.schedule); !note.empty())
    std::cerr << plan.name << ": " << note << '\n';
  piped.schedule = pipeline::current_name(piped.schedule);
  const auto usual = static_cast<std::uint32_t>(pipeline::usual_chunks(piped.schedule));
  if (flags.chunks)
    piped.chunks = *flags.chunks;
  else if (flags.stages == 1u || (flags.schedule && usual == 1))
    piped.chunks = 1;
  else if (flags.schedule)
    piped.chunks = std::max(keeps_chunks(plan) ? before.chunks : 1, usual);
  // A split into another number of chunks no longer applies; the check of the plan covers --split.
  if (piped.stages != before.stages || piped.chunks != before.chunks) piped.split.clear();
  if (flags.predict_weights) piped.predict_weights = true;
  if (flags.split) piped.split = *flags.split == "none" ? "" : *flags.split;
  const bool all = before.stages > 1 && before.recompute.size() == before.stages;
  if (all && piped.stages > 1)
    piped.recompute = all_stages(piped.stages);
  else if (piped.stages != before.stages)
    std::erase_if(piped.recompute,
                  [&](std::uint32_t stage) { return stage >= piped.stages || piped.stages == 1; });
  if (!flags.recompute) return {};
  const auto recompute = parse_recompute(*flags.recompute, piped.stages);
  if (!recompute) return recompute.error();
  piped.recompute = *recompute;
  return {};
}

}  // namespace leeway
