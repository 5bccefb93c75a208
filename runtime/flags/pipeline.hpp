#pragma once
// The flags of the group "Pipeline": stages, pipelines, schedule, split and recomputation.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "core/expected.hpp"
#include "plan/plan.hpp"

namespace leeway {

struct PipelineFlags {
  std::optional<std::uint32_t> stages, pipelines, chunks;
  std::optional<std::string> schedule, split, recompute;
  bool predict_weights = false;
};

/// Help shows the values of `plan` as defaults.
void add_pipeline_flags(CLI::App& app, PipelineFlags& flags, const Plan& plan);

/// Applies the flags to the plan, after all other settings. `workers` is the value of --workers.
/// The plan's workers, chunks, split and recompute follow a flag that changes the number of stages
/// or the schedule. Errors name the flag and an allowed value.
Status apply_pipeline(const PipelineFlags& flags, std::optional<std::uint32_t> workers, Plan& plan);

}  // namespace leeway
