#pragma once
// The flags of the group "Pipeline": how the model is cut into stages, and who trains them.
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
};

/// Help shows what `plan` has where a flag is not given.
void add_pipeline_flags(CLI::App& app, PipelineFlags& flags, const Plan& plan);

/// Puts the flags into the plan, whose other settings have been put in already; `workers` is what
/// --workers says. The plan's own workers, chunks, split and recompute follow where a flag changes
/// what they go by. Errors name the flag and what to give.
Status apply_pipeline(const PipelineFlags& flags, std::optional<std::uint32_t> workers, Plan& plan);

}  // namespace leeway
