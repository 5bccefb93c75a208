#include "policies/pipeline/stage_memory.hpp"

#include <catch2/catch.hpp>

using namespace leeway;
using namespace leeway::pipeline;

namespace {

/// The most micro-batches whose layers have been computed again at once: the one that is under way,
/// and those between the halves of their backwards.
int computed_again(const Spec& spec, int stage) {
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

TEST_CASE("what is computed again is there once, or as often as halves are open") {
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
          REQUIRE(computed_again(spec, stage) ==
                  std::max(1, stage_counts(spec, stage).open_halves));
        }
      }
}

TEST_CASE("a stage's memory is that of its parts, as often as its schedule keeps it") {
  const StageCounts counts{.versions = 3, .gradients = 2, .activations = 5, .open_halves = 2};
  const std::vector<ChunkMemory> parts = {
      {.kept = 100, .open = 10, .shared = 4, .working = 7, .weights = 1000, .statistics = 30},
      {.kept = 90, .open = 20, .shared = 3, .working = 9, .weights = 2000, .statistics = 40}};
  const StageMemory memory = stage_memory(counts, parts, 2);
  CHECK(memory.weights == 3 * 3070);
  CHECK(memory.gradients == 2 * 3070);
  CHECK(memory.optimizer == 2 * 3000);
  CHECK(memory.activations == 5 * 100 + 2 * 20 + 2 * 7);
  CHECK(memory.working == 9);
  CHECK(memory.total() == 3 * 3070 + 2 * 3070 + 2 * 3000 + 554 + 9);
}

TEST_CASE("a pipeline that is never emptied keeps what it keeps in the long run") {
  for (const int updates : {1, 9}) {
    const Spec spec{.schedule = "weight_stashing", .stages = 4, .updates = updates};
    CHECK(stage_counts(spec, 0).activations == 4);
    CHECK(stage_counts(spec, 0).versions == 4);
    CHECK(stage_counts(spec, 3).activations == 1);
    CHECK(stage_counts(spec, 0).gradients == 1);
  }
  CHECK(stage_counts({"1f1b", 4, 8}, 1).gradients == 2);
}
