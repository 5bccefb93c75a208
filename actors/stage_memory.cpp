#include "actors/stage_memory.hpp"

#include <algorithm>

#include "models/part_bytes.hpp"
#include "policies/balance/micro_batches.hpp"
#include "policies/pipeline/schedule.hpp"

namespace leeway {

StageMemory predicted_memory(const Plan& plan, const Model& model, const Stages& stages,
                             std::uint32_t stage) {
  const pipeline::Spec& spec = stages.spec();
  const pipeline::Schedule& schedule = **pipeline::find_schedule(spec.schedule);
  const int of = static_cast<int>(stage);
  const std::int64_t open_halves = schedule.peak_open_halves(spec, of);
  const StageShare& share = stages.share(stage);
  const std::int64_t samples = micro_batch_size(plan);
  StageMemory memory;
  std::int64_t kept = 0, open = 0, shared = 0;
  for (const ModelPart& part : share.chunks) {
    const PartBytes bytes =
        part_bytes(model, part, samples, {.halves = open_halves > 0, .recompute = share.recompute});
    const std::int64_t parameters = bytes.weights + bytes.statistics;
    memory.weights += parameters * schedule.weight_versions(spec, of);
    memory.gradients += parameters * (plan.micro_batches > 1 ? 2 : 1);
    kept = std::max(kept, bytes.kept());
    open = std::max(open, bytes.open);
    shared += bytes.shared;
  }
  memory.activations = kept * schedule.peak_activations(spec, of) + open * open_halves + shared;
  return memory;
}

}  // namespace leeway
