#include "policies/pipeline/stage_memory.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <set>

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

/// Activations and pending gradients of both chunks.
using Moment = std::array<int, 4>;

std::set<Moment> moments_in(const StageCounts& counts) {
  std::set<Moment> moments;
  for (const HeldMicroBatches& held : counts.moments)
    moments.insert({held.activations[0], held.activations[1], held.pending[0], held.pending[1]});
  return moments;
}

/// Those after each operation but a backward for weights, which only frees.
std::set<Moment> moments_of_table(const Spec& spec, int stage) {
  std::set<Moment> moments;
  Moment now{};
  for (const Op& op : (*find_schedule(spec.schedule))->stage(spec, stage)) {
    if (op.kind == OpKind::update) continue;
    int& activations = now[static_cast<std::size_t>(op.chunk)];
    int& pending = now[static_cast<std::size_t>(2 + op.chunk)];
    if (op.kind == OpKind::forward) ++activations;
    const bool is_whole = op.kind == OpKind::backward && spec.schedule == "dualpipe_v";
    if (op.kind == OpKind::backward_input || is_whole) ++pending;
    moments.insert(now);
    if (is_whole) --pending;
    if (gives_weight_gradient(op.kind)) --activations;
    if (op.kind == OpKind::backward_weights) --pending;
  }
  return moments;
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
  StageCounts counts{.versions = 3, .gradients = 2, .activations = 5, .pending_backwards = 2};
  // Most bytes are kept at the second moment, not where the most micro-batches are.
  counts.moments = {{{5, 0}, {1, 0}, {1, 0}}, {{1, 4}, {0, 2}, {1, 2}}, {{0, 3}, {0, 0}, {0, 0}}};
  const std::vector<ChunkMemory> chunks = {
      {.kept = 100, .pending = 10, .shared = 4, .working = 7, .weights = 1000, .statistics = 30},
      {.kept = 110, .pending = 20, .shared = 3, .working = 9, .weights = 2000, .statistics = 40}};
  const StageMemory memory = stage_memory(counts, chunks, 2);
  CHECK(memory.weights == 3 * 3070);
  CHECK(memory.gradients == 2 * 3070);
  CHECK(memory.optimizer == 2 * 3000);
  CHECK(memory.activations == 100 + 4 * 110 + 2 * 20 + 4 + 2 * 3);
  CHECK(memory.working == 9);
  CHECK(memory.total() == 3 * 3070 + 2 * 3070 + 2 * 3000 + 590 + 9);
  const StageMemory one = stage_memory(counts, {&chunks[0], 1}, 0);
  CHECK(one.activations == 5 * 100 + 2 * 10 + 2 * 4);
}

TEST_CASE("the moments of a schedule with chunks are those of its whole table") {
  for (const auto& entry : catalogue()) {
    if (entry.chunks == 1) continue;
    for (int stages = 1; stages <= 5; ++stages)
      for (int micro_batches = 1; micro_batches <= 16 * stages; ++micro_batches) {
        const Spec spec{std::string(entry.name), stages, micro_batches, entry.chunks};
        if (!validate(spec)) continue;
        for (int stage = 0; stage < stages; ++stage) {
          CAPTURE(spec.schedule, stages, micro_batches, stage);
          REQUIRE(moments_in(stage_counts(spec, stage)) == moments_of_table(spec, stage));
        }
      }
  }
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
