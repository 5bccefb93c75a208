#include <rapidcheck/catch.h>

#include <cmath>

#include "tests/models/support.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

/// y = x |x|, as a scenario program would write it: not in place, and backward reads the output.
class SignedSquare final : public Layer {
 public:
  std::string_view kind() const override { return "signed_square"; }
  Expected<Shape> set_input(const Shape& input) override {
    count_ = input.count();
    return input;
  }
  void forward(const ForwardArgs& args) const override {
    for (std::int64_t i = 0; i < args.batch * count_; ++i)
      args.y[i] = args.x[i] * std::abs(args.x[i]);
  }
  void backward(const BackwardArgs& args) const override {
    for (std::int64_t i = 0; args.dx && i < args.batch * count_; ++i)
      args.dx[i] = args.dy[i] * 2 * std::sqrt(std::abs(args.y[i]));
  }

 private:
  std::int64_t count_ = 0;
};

/// y = x / 2, in place.
class Halve final : public Layer {
 public:
  std::string_view kind() const override { return "halve"; }
  Expected<Shape> set_input(const Shape& input) override {
    count_ = input.count();
    return input;
  }
  bool in_place() const override { return true; }
  void forward(const ForwardArgs& args) const override {
    for (std::int64_t i = 0; i < args.batch * count_; ++i) args.y[i] = args.x[i] / 2;
  }
  void backward(const BackwardArgs& args) const override {
    for (std::int64_t i = 0; args.dx && i < args.batch * count_; ++i) args.dx[i] = args.dy[i] / 2;
  }

 private:
  std::int64_t count_ = 0;
};

Expected<std::unique_ptr<Layer>> make_halve(const std::string&) {
  return std::unique_ptr<Layer>(std::make_unique<Halve>());
}

Expected<std::unique_ptr<Layer>> make_signed_square(const std::string& arguments) {
  if (!arguments.empty()) return Error{"signed_square takes no arguments; leave them out"};
  return std::unique_ptr<Layer>(std::make_unique<SignedSquare>());
}

}  // namespace

TEST_CASE("gradients equal finite differences: linear with softmax cross entropy", "[layers]") {
  REQUIRE(worst_gradient_error(classifier({linear(5)}, {7}, 5), 6, 1) < 2e-3);
}

TEST_CASE("gradients equal finite differences: linear with mean squared error", "[layers]") {
  REQUIRE(worst_gradient_error(regressor({linear(3)}, {4}, 3), 5, 2) < 2e-3);
}

TEST_CASE("gradients equal finite differences: two consecutive linear layers", "[layers]") {
  REQUIRE(worst_gradient_error(classifier({linear(6), linear(4)}, {5}, 4), 8, 3) < 2e-3);
}

TEST_CASE("gradients equal finite differences: flatten, and relu after linear", "[layers]") {
  // The seed keeps all units further from the kink than the step of the finite difference.
  REQUIRE(
      worst_gradient_error(
          classifier({flatten(), linear(6), relu(), linear(5), relu(), linear(3)}, {2, 2, 2}, 3), 2,
          11) < 2e-3);
}

TEST_CASE("gradients equal finite differences: in-place layers after one whose output is needed",
          "[layers]") {
  register_layer("signed_square", make_signed_square);
  register_layer("halve", make_halve);
  const Layers layers = {linear(6),       custom("halve"), custom("signed_square"),
                         custom("halve"), relu(),          linear(3)};
  REQUIRE(worst_gradient_error(classifier(layers, {4}, 3), 2, 4) < 2e-3);
}

TEST_CASE("relu and flatten before the first parameters do not modify the batch", "[layers]") {
  kernels::use_one_compute_thread();
  const auto model = classifier({relu(), flatten(), relu(), linear(3)}, {2, 2}, 3);
  Memory memory(model);
  memory.initialize(1);
  const RandomBatch data(*model, 5, 1);
  const Floats before = data.x;
  Pass pass(model, 5, true);
  pass.forward(data.batch, memory.weights());
  run_backward(pass, memory);
  REQUIRE(data.x == before);
  REQUIRE(worst_gradient_error(model, 5, 1) < 2e-3);
}

TEST_CASE("a model with parameters split by rows computes the same results", "[layers]") {
  kernels::use_one_compute_thread();
  rc::prop("split equals whole", [] {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const std::int64_t batch = *rc::gen::inRange(0, 9);
    const auto max_block_bytes = static_cast<std::size_t>(*rc::gen::inRange(1, 600));
    const auto model = classifier({linear(19), relu(), linear(7)}, {13}, 7);
    Memory whole(model), split(model, max_block_bytes);
    whole.initialize(seed);
    split.initialize(seed);
    const RandomBatch data(*model, batch, seed);
    Pass one(model, 9, true), other(model, 9, true);
    const auto a = one.forward(data.batch, whole.weights());
    const auto b = other.forward(data.batch, split.weights());
    RC_ASSERT(std::abs(a.loss - b.loss) < 1e-5);
    run_backward(one, whole);
    run_backward(other, split);
    for (std::size_t p = 0; p < model->parameters().size(); ++p) {
      const Floats x = whole.gradient(p), y = split.gradient(p);
      for (std::size_t i = 0; i < x.size(); ++i) RC_ASSERT(std::abs(x[i] - y[i]) < 1e-5f);
    }
  });
}

TEST_CASE("an empty batch has loss 0 and zero gradients", "[layers]") {
  kernels::use_one_compute_thread();
  const auto model = classifier({linear(4), relu(), linear(3)}, {5}, 3);
  Memory memory(model);
  memory.initialize(1);
  Pass pass(model, 4, true);
  const auto result = pass.forward({}, memory.weights());
  REQUIRE(result.loss == 0);
  REQUIRE(result.correct == 0);
  run_backward(pass, memory);
  for (std::size_t p = 0; p < model->parameters().size(); ++p)
    for (const float g : memory.gradient(p)) REQUIRE(g == 0);
}

TEST_CASE("the error for an unknown custom layer suggests the nearest known name", "[layers]") {
  register_layer("signed_square", make_signed_square);
  const auto build = [](const plan::Layer& layer) {
    auto model = Model::build({layer}, plan::Loss::softmax_cross_entropy, {3}, 3, 0);
    return model ? std::string() : model.error().text;
  };
  REQUIRE(build(custom("signed_squares")) ==
          "model: layer 0: custom layer \"signed_squares\" is not registered; did you mean "
          "\"signed_square\"?");
  REQUIRE(build(custom("signed_square", "x")) ==
          "model: layer 0: signed_square takes no arguments; leave them out");
  REQUIRE(build(custom("signed_square")).empty());
}
