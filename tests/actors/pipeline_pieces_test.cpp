#include "actors/pipeline_pieces.hpp"

#include <catch2/catch.hpp>

#include "runtime/models.hpp"

using namespace leeway;
using namespace leeway::pipeline;

namespace {

PartitionProblem problem_of(const std::vector<plan::Layer>& layers, const Spec& spec) {
  const auto model = Model::build(layers, plan::Loss::softmax_cross_entropy, {1, 28, 28}, 10, 0);
  LW_CHECK(model.has_value(), model ? "" : model.error().text);
  const std::int64_t batch = 16;
  PartitionProblem problem;
  problem.pieces = pipeline_pieces(pieces_of(**model, batch, *make_cpu_executor()),
                                   estimated_times(**model, batch, 50e9, 20e9));
  problem.devices.resize(static_cast<std::size_t>(spec.stages));
  problem.spec = spec;
  return problem;
}

}  // namespace

TEST_CASE("a piece takes as long as its layers together") {
  const auto problem = problem_of(small_resnet(10), {"1f1b", 2, 4});
  const auto model =
      *Model::build(small_resnet(10), plan::Loss::softmax_cross_entropy, {1, 28, 28}, 10, 0);
  std::int64_t pieces = 0, layers = 0;
  for (const auto& piece : problem.pieces) pieces += piece.ns.of_micro_batch();
  for (const auto& time : estimated_times(*model, 16, 50e9, 20e9))
    layers += time.forward + time.backward_input + time.backward_weights;
  CHECK(pieces == layers);
}

TEST_CASE("a residual network on more stages is faster, and its schedule is played by its costs") {
  std::int64_t before = kNoLimit;
  for (const int stages : {1, 2, 4}) {
    const auto problem = problem_of(small_resnet(10), {"1f1b", stages, 8});
    const auto partition = best_partition(problem);
    REQUIRE(partition);
    CHECK(partition->slowest_ns < before);
    before = partition->slowest_ns;
    const auto table = make_table(problem.spec);
    const auto timeline = play(*table, partition->costs());
    REQUIRE(timeline);
    CHECK(timeline->length >= 8 * partition->slowest_ns);
    CHECK(timeline->length <= (8 + stages - 1) * partition->slowest_ns);
  }
}
