#include "models/pieces.hpp"

#include <catch2/catch.hpp>

#include "models/pass_plan.hpp"
#include "runtime/models.hpp"
#include "tests/models/support.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

std::vector<ModelPiece> pieces_of_batch(const Model& model, std::int64_t batch = 4) {
  return pieces_of(model, batch, *make_cpu_executor());
}

std::vector<std::string> names_of(const std::vector<ModelPiece>& pieces) {
  std::vector<std::string> names;
  for (const auto& piece : pieces) names.push_back(piece.name + " " + piece.kind);
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a chain can be split after every layer") {
  const auto model = classifier(mlp({8}, 3), {2, 3}, 3);
  const auto pieces = pieces_of_batch(*model);
  CHECK(names_of(pieces) == Names{"0 flatten", "1 linear", "2 relu", "3 linear"});
  CHECK_FALSE(can_split_before(*model, 0));
  CHECK_FALSE(can_split_before(*model, model->layers()));
}

TEST_CASE("a residual block is one piece, because two tensors cross its inside") {
  const auto model = classifier({conv2d(4, 3, {.padding = 1}), residual_block(4, 1), relu(),
                                 residual_block(8, 2), flatten(), linear(3)},
                                {1, 6, 6}, 3);
  const auto pieces = pieces_of_batch(*model);
  CHECK(names_of(pieces) ==
        Names{"0 conv2d", "1 residual", "2 relu", "3 residual", "4 flatten", "5 linear"});
  int next = 0;
  for (const auto& piece : pieces) {
    CHECK(piece.first == next);
    next = piece.end;
  }
  CHECK(next == model->layers());
}

TEST_CASE("a residual block that reads the batch, and a nested block, are not split") {
  const auto model =
      classifier({residual({linear(6), residual({linear(6), relu()}), relu()}), linear(3)}, {6}, 3);
  CHECK(names_of(pieces_of_batch(*model)) == Names{"0 residual", "1 linear"});
}

TEST_CASE("pieces report the memory of their activations, gradients and weights") {
  const auto model = classifier({linear(5), relu(), batch_norm(), linear(3)}, {7}, 3);
  const std::int64_t batch = 4;
  const auto pieces = pieces_of_batch(*model, batch);
  REQUIRE(pieces.size() == 4);
  CHECK(pieces[0].output_bytes == batch * 5 * 4);
  CHECK(pieces[0].kept_bytes == batch * 5 * 4);
  CHECK(pieces[0].weight_bytes == (7 * 5 + 5) * 4);
  CHECK(pieces[0].gradient_bytes == batch * 5 * 4);
  CHECK(pieces[0].first_bytes == 0);
  CHECK(pieces[1].gradient_bytes == 0);
  CHECK(pieces[1].first_bytes == batch * 5 * 4);  // otherwise it overwrites the output of linear
  CHECK(pieces[2].weight_bytes == 2 * 5 * 4);
  CHECK(pieces[2].statistic_bytes == 2 * 5 * 4);
  CHECK(pieces[2].kept_bytes ==
        batch * 5 * 4 + static_cast<std::int64_t>(model->layer(2).kept_bytes(batch)));
  CHECK(pieces[3].working_bytes >= batch * (5 + 3) * 4);
  CHECK(pieces[3].weight_bytes == (5 * 3 + 3) * 4);
}

TEST_CASE("the pieces together have all parameters of the model and all memory of a pass") {
  const auto model = classifier(small_resnet(10), {1, 28, 28}, 10);
  const std::int64_t batch = 2;
  std::int64_t trained = 0, kept = 0, expected = 0;
  for (const auto& piece : pieces_of_batch(*model, batch)) {
    trained += piece.weight_bytes;
    kept += piece.kept_bytes;
  }
  CHECK(trained == 4 * model->parameter_count());
  for (const auto floats : PassPlan(*model, true).output_floats) expected += 4 * batch * floats;
  for (int i = 0; i < model->layers(); ++i)
    expected += static_cast<std::int64_t>(model->layer(i).kept_bytes(batch));
  expected += 4 * batch * model->output().count();  // the loss's gradient
  CHECK(kept == expected);
}

TEST_CASE("gradients are needed from the first layer with parameters") {
  const auto model = classifier({relu(), flatten(), linear(4), relu(), linear(3)}, {2, 3}, 3);
  CHECK(wanted_gradients(*model) == std::vector<bool>{false, false, true, true, true});
}
