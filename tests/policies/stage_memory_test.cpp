#include "policies/pipeline/stage_memory.hpp"

#include <catch2/catch.hpp>

using namespace leeway;
using namespace leeway::pipeline;

namespace {

/// The most micro-batches with recomputed activations at once: the one in backward, and those
/// between their backward for inputs and their backward for weights.
int most_recomputed(const Spec& spec, int stage) {
  int open = 0, most = 0;
  for (const Op& op : (*find_schedule(spec.schedule))->stage(spec, stage)) {
    if (op.kind == OpKind::update) continue;
    if (op.kind == OpKind::backward_weights) --open;
    most = std::max(most, open + 1);
    if (op.kind == OpKind::backward_input) ++open;
  }
  return most;
}

}  // namespace

TEST_CASE("recomputed activations count once, or once per pending backward for weights") {
  for (const auto& entry : catalogue())
    for (int stages = 1; stages <= 6; ++stages)
      for (int micro_batches = 1; micro_batches <= 12; ++micro_batches) {
        const Spec spec{.schedule = std::string(entry.name),
                        .stages = stages,
                        .micro_batches = micro_batches,
                        .updates = 3};
        if (!validate(spec)) continue;
        for (int stage = 0; stage < stages; ++stage) {
          CAPTURE(spec.schedule, stages, micro_batches, stage);
          REQUIRE(most_recomputed(spec, stage) ==
                  std::max(1, stage_counts(spec, stage).pending_backwards));
        }
      }
}

TEST_CASE("a stage's memory is that of its chunks times the counts of its schedule") {
  const StageCounts counts{.versions = 3, .gradients = 2, .activations = 5, .pending_backwards = 2};
  const std::vector<ChunkMemory> chunks = {
      {.kept = 100, .pending = 10, .shared = 4, .working = 7, .weights = 1000, .statistics = 30},
      {.kept = 90, .pending = 20, .shared = 3, .working = 9, .weights = 2000, .statistics = 40}};
  const StageMemory memory = stage_memory(counts, chunks, 2);
  CHECK(memory.weights == 3 * 3070);
  CHECK(memory.gradients == 2 * 3070);
  CHECK(memory.optimizer == 2 * 3000);
  CHECK(memory.activations == 5 * 100 + 2 * 20 + 2 * 7);
  CHECK(memory.working == 9);
  CHECK(memory.total() == 3 * 3070 + 2 * 3070 + 2 * 3000 + 554 + 9);
}

TEST_CASE("the counts of a schedule without a flush are those of a long run") {
  for (const int updates : {1, 9}) {
    const Spec spec{.schedule = "weight_stashing", .stages = 4, .updates = updates};
    CHECK(stage_counts(spec, 0).activations == 4);
    CHECK(stage_counts(spec, 0).versions == 4);
    CHECK(stage_counts(spec, 3).activations == 1);
    CHECK(stage_counts(spec, 0).gradients == 1);
  }
  CHECK(stage_counts({"1f1b", 4, 8}, 1).gradients == 2);
}
