// The functions of words.hpp and models.hpp: the parts of plans that they make.
#include <catch2/catch.hpp>

#include "leeway.hpp"

namespace leeway {
namespace {

using Layers = std::vector<plan::Layer>;

plan::Layer conv(std::uint32_t outputs, std::uint32_t kernel, std::uint32_t stride,
                 std::uint32_t padding) {
  return plan::Conv2d{
      .outputs = outputs, .kernel = kernel, .stride = stride, .padding = padding, .bias = false};
}

/// The number of linear and convolutional layers, without those of shortcuts.
int weight_layers(const Layers& layers) {
  int count = 0;
  for (const auto& layer : layers) {
    if (const auto* residual = std::get_if<plan::Residual>(&layer))
      count += weight_layers(residual->body);
    count +=
        std::holds_alternative<plan::Conv2d>(layer) || std::holds_alternative<plan::Linear>(layer)
            ? 1
            : 0;
  }
  return count;
}

}  // namespace

TEST_CASE("words for layers set their arguments and keep the other defaults") {
  CHECK(linear(10) == plan::Layer(plan::Linear{10}));
  CHECK(conv2d(64, 5) == plan::Layer(plan::Conv2d{.outputs = 64, .kernel = 5}));
  CHECK(
      conv2d(64, 3,
             {.stride = 2, .padding = 1, .groups = 4, .bias = false, .init = plan::Init::xavier}) ==
      plan::Layer(plan::Conv2d{64, 3, 2, 1, 4, false, plan::Init::xavier}));
  CHECK(max_pool(3) == plan::Layer(plan::MaxPool2d{3, 3, 0}));
  CHECK(avg_pool(3) == plan::Layer(plan::AvgPool2d{3, 3, 0}));
  CHECK(std::get<plan::AvgPool2d>(global_avg_pool()).kernel == 0);
  CHECK(dropout(0.2) == plan::Layer(plan::Dropout{0.2}));
  CHECK(embedding(1000, 64) == plan::Layer(plan::Embedding{1000, 64}));
  CHECK(tanh_layer() == plan::Layer(plan::Tanh{}));
  CHECK(sigmoid_layer() == plan::Layer(plan::Sigmoid{}));
}

TEST_CASE("words for consistency and balance set the plan") {
  CHECK(adaptive(2, 6) == plan::Consistency(plan::Adaptive{2, 6}));
  Scenario scenario("words", "Words.");
  scenario.balance(plan::Balance::by_speed);
  CHECK(scenario.plan().balance == plan::Balance::by_speed);
}

TEST_CASE("words for stragglers set their arguments") {
  using namespace std::chrono_literals;
  CHECK(slow_by(3, {4, 4, 1, 1}) == plan::Straggler{3, false, plan::Repeated{{4, 4, 1, 1}}});
  CHECK(slow_by(3, std::vector<double>{2, 1}) == plan::Straggler{3, false, plan::Repeated{{2, 1}}});
  CHECK(slow_by(3, "warms-up") == plan::Straggler{3, false, plan::CustomStraggler{"warms-up"}});
  CHECK(delay(3, 5ms) == plan::Straggler{3, false, plan::FixedDelay{5}});
  CHECK(delay(all_workers, 250us) == plan::Straggler{0, true, plan::FixedDelay{0.25}});
  CHECK(shares_machine(1, 3, 100, 300).kind == plan::StragglerKind(plan::Sharing{3, 100, 300, -1}));
  CHECK(shares_machine(1, 3, 100, 300, 50).kind ==
        plan::StragglerKind(plan::Sharing{3, 100, 300, 50}));
  CHECK(slow(together({2, 3}), 4) == plan::Straggler{0, false, plan::ConstantFactor{4}, {2, 3}});
  CHECK(slow_together({2, 3}, plan::Pareto{}) == plan::Straggler{0, false, plan::Pareto{}, {2, 3}});
  CHECK(from_share(0.5, slow(3, 4)).from == plan::StragglerStart(0.5));
  CHECK(from_iteration(100, slow(3, 4)).from == plan::StragglerStart(std::int64_t{100}));
}

TEST_CASE("residual takes a body and an optional shortcut") {
  const plan::Layer plain = residual({linear(4), relu()});
  CHECK(std::get<plan::Residual>(plain).body == Layers{linear(4), relu()});
  CHECK(std::get<plan::Residual>(plain).shortcut.empty());
  const plan::Layer projected = residual({conv2d(8, 3)}, {conv2d(8, 1), batch_norm()});
  CHECK(std::get<plan::Residual>(projected).body == Layers{conv2d(8, 3)});
  CHECK(std::get<plan::Residual>(projected).shortcut == Layers{conv2d(8, 1), batch_norm()});
  CHECK(std::holds_alternative<plan::Residual>(
      std::get<plan::Residual>(residual({residual({gelu()})})).body[0]));
}

TEST_CASE("models are lists of layers") {
  CHECK(mlp({512, 256}, 10) ==
        Layers{flatten(), linear(512), relu(), linear(256), relu(), linear(10)});
  CHECK(mlp({}, 3) == logistic_regression(3));
  CHECK(lenet5(10)[0] == conv2d(6, 5, {.padding = 2}));
  CHECK(weight_layers(lenet5(10)) == 5);
  CHECK(weight_layers(vgg_like(10)) == 4);
}

TEST_CASE("the small residual network has the 6n + 2 layers of its paper") {
  const Layers layers = small_resnet(10);
  CHECK(weight_layers(layers) == 6 * 2 + 2);
  CHECK(layers[0] == conv(16, 3, 1, 1));
  std::vector<plan::Layer> blocks;
  for (const auto& layer : layers)
    if (std::holds_alternative<plan::Residual>(layer)) blocks.push_back(layer);
  REQUIRE(blocks.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) {
    const std::uint32_t channels = 16u << (i / 2);
    const std::uint32_t stride = i == 2 || i == 4 ? 2 : 1;
    const Layers shortcut = stride == 2 ? Layers{conv(channels, 1, 2, 0), batch_norm()} : Layers{};
    CHECK(blocks[i] == residual({conv(channels, 3, stride, 1), batch_norm(), relu(),
                                 conv(channels, 3, 1, 1), batch_norm()},
                                shortcut));
  }
  CHECK(layers.back() == linear(10));
}

TEST_CASE("every model makes a valid plan") {
  for (const auto& layers :
       {mlp({8}, 10), logistic_regression(10), lenet5(10), vgg_like(10), small_resnet(10)}) {
    Plan plan;
    plan.model = layers;
    const Status status = validate(plan);
    INFO((status ? "" : status.error().text));
    CHECK(status);
    CHECK(*decode_plan(encode(plan)) == plan);
  }
}

}  // namespace leeway
