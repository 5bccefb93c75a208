#include "actors/stage/pipeline_pieces.hpp"

#include <catch2/catch.hpp>

#include "runtime/models.hpp"

using namespace leeway;
using namespace leeway::pipeline;

namespace {

std::shared_ptr<const Model> model_of(const std::vector<plan::Layer>& layers) {
  const auto model = Model::build(layers, plan::Loss::softmax_cross_entropy, {1, 28, 28}, 10, 0);
  LW_CHECK(model.has_value(), model ? "" : model.error().text);
  return *model;
}

/// A problem with micro-batches of 16 samples and links that take no time.
PartitionProblem problem_of(const std::vector<plan::Layer>& layers, const Spec& spec) {
  Plan plan;
  plan.micro_batches = 4;
  auto problem = partition_problem(plan, *model_of(layers), spec, {.speed = 50, .memory = 20});
  problem.link_bytes_per_second = 0;
  return problem;
}

}  // namespace

TEST_CASE("the time of a piece is the sum of its layers' times") {
  const auto problem = problem_of(small_resnet(10), {"1f1b", 2, 4});
  const auto model = model_of(small_resnet(10));
  std::int64_t pieces = 0, layers = 0;
  for (const auto& piece : problem.pieces) pieces += piece.ns.of_micro_batch();
  for (const auto& time : estimated_times(*model, 16, 50e9, 20e9))
    layers += time.forward + time.backward_input + time.backward_weights;
  CHECK(pieces == layers);
}

TEST_CASE("a residual network is faster on more stages, by pace and by its played schedule") {
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

TEST_CASE("a partition problem uses the plan's largest micro-batch and the given devices") {
  Plan plan;
  plan.batch = 10;
  plan.micro_batches = 4;  // of 2, 3, 2 and 3 samples
  plan.optimizer = adam();
  const auto model = model_of(mlp({20}, 10));
  const Spec spec{"1f1b", 2, 4};
  const auto problem = partition_problem(plan, *model, spec, {.speed = 2, .link = 8});
  CHECK(problem.spec == spec);
  CHECK(problem.devices.size() == 2);
  CHECK(problem.input_bytes == 3 * 28 * 28 * 4);
  CHECK(problem.link_bytes_per_second == 1'000'000'000);
  CHECK(problem.optimizer_slots == 2);
  CHECK(problem.pieces.size() == 4);
  const auto twice = partition_problem(plan, *model, spec, {.speed = 1, .link = 8});
  CHECK(twice.pieces[1].ns.forward > problem.pieces[1].ns.forward);
}

TEST_CASE("with balance by speed memory counts the largest micro-batch, times the usual one") {
  Plan plan;
  plan.batch = 8;
  plan.micro_batches = 4;
  const auto model = model_of(mlp({20}, 10));
  const Spec spec{"1f1b", 2, 4};
  const auto usual = partition_problem(plan, *model, spec, {});
  plan.balance = plan::Balance::by_speed;
  const auto by_speed = partition_problem(plan, *model, spec, {});
  CHECK(by_speed.input_bytes == 8 * usual.input_bytes);
  for (std::size_t i = 0; i < usual.pieces.size(); ++i) {
    CHECK(by_speed.pieces[i].ns == usual.pieces[i].ns);
    CHECK(by_speed.pieces[i].output_bytes == usual.pieces[i].output_bytes);
    CHECK(by_speed.pieces[i].handed_bytes == 8 * usual.pieces[i].output_bytes);
    CHECK(by_speed.pieces[i].kept_bytes == 8 * usual.pieces[i].kept_bytes);
    CHECK(by_speed.pieces[i].weight_bytes == usual.pieces[i].weight_bytes);
  }
}

TEST_CASE("measured times replace estimated ones") {
  const auto model = model_of(mlp({20}, 10));
  const std::vector<LayerTime> times = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10, 11, 12}};
  const auto problem = partition_problem({}, *model, {"1f1b", 2, 4}, {}, times);
  REQUIRE(problem.pieces.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(problem.pieces[i].ns.forward == times[i].forward);
    CHECK(problem.pieces[i].ns.backward_input == times[i].backward_input);
    CHECK(problem.pieces[i].ns.backward_weights == times[i].backward_weights);
  }
}

TEST_CASE("times beyond the range of a partition are capped") {
  const auto problem = partition_problem({}, *model_of(vgg_like(10)), {"1f1b", 3, 4},
                                         {.speed = 1e-9, .memory = 1e-9, .link = 1e-6});
  CHECK(problem.pieces[0].ns.forward == kMostOfPiece);
  CHECK(best_partition(problem));
}

TEST_CASE("a split is searched or read from the setting, whose name begins each error") {
  const auto problem = problem_of(mlp({20, 20}, 10), {"1f1b", 2, 4});
  const auto best = find_partition(problem, "", "x");
  REQUIRE(best);
  CHECK(best->chunks == best_partition(problem)->chunks);
  const auto taken = find_partition(problem, "0-3,4-5", "x");
  REQUIRE(taken);
  CHECK(text_of(*taken, problem.pieces) == "0-3,4-5");
  const auto refused = find_partition(problem, "0-3", "--split");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().text == "--split: the split \"0-3\": layer 4 is in no chunk; end with 5");
  CHECK(find_partition(problem, "0-1,2,3-5", "--split").error().text ==
        "--split: the split has 3 chunks, and 2 stages with 1 chunk each make 2; give 2 chunks, or "
        "--stages 3");
}
