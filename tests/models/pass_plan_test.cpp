#include "models/pass_plan.hpp"

#include <map>

#include "tests/models/support.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

constexpr int kNone = PassPlan::kNone;
constexpr int kModels = 3000;

/// y = x, with the default flags of a layer: not in place, and backward reads x and y.
class Plain final : public Layer {
 public:
  std::string_view kind() const override { return "plain"; }
  Expected<Shape> set_input(const Shape& input) override { return input; }
  void forward(const ForwardArgs&) const override {}
  void backward(const BackwardArgs&) const override {}
};

Expected<std::unique_ptr<Layer>> make_plain(const std::string&) {
  return std::unique_ptr<Layer>(std::make_unique<Plain>());
}

/// Random layers for vectors: every combination of flags, nested residual blocks, empty branches.
class RandomLayers {
 public:
  explicit RandomLayers(std::uint64_t seed) : rng_(seed) {}

  /// Sets `width` to the width of the output.
  Layers chain(std::uint64_t count, std::uint32_t& width, int depth) {
    Layers layers;
    for (std::uint64_t i = 0; i < count; ++i) layers.push_back(layer(width, depth));
    return layers;
  }

 private:
  plan::Layer layer(std::uint32_t& width, int depth) {
    switch (rng_.below(depth < 3 ? 11 : 8)) {
      case 0:
        width = 1 + static_cast<std::uint32_t>(rng_.below(9));
        return linear(width);
      case 1:
        return relu();
      case 2:
        return gelu();
      case 3:
        return dropout();
      case 4:
        return tanh_layer();
      case 5:
        return flatten();
      case 6:
        return layer_norm();
      case 7:
        return custom("plain");
      default:
        return block(width, depth);
    }
  }
  plan::Layer block(std::uint32_t& width, int depth) {
    std::uint32_t one = width, other = width;
    Layers body = chain(rng_.below(4), one, depth + 1);
    Layers shortcut = chain(rng_.one_in(2) ? rng_.below(3) : 0, other, depth + 1);
    width = rng_.one_in(2) ? one : other;
    if (one != width) body.push_back(linear(width));
    if (other != width) shortcut.push_back(linear(width));
    return residual(std::move(body), std::move(shortcut));
  }

  Rng rng_;
};

std::shared_ptr<const Model> random_model(std::uint64_t seed) {
  register_layer("plain", make_plain);
  RandomLayers random(seed);
  std::uint32_t width = 1 + static_cast<std::uint32_t>(seed % 7);
  const Shape input{width};
  const Layers layers = random.chain(1 + seed % 9, width, 0);
  return regressor(layers, input, width);
}

/// Executes a plan symbolically. An output buffer holds the number of the layer that wrote it. A
/// gradient buffer holds a sum of terms: the loss's gradient and the results of layers' backwards.
/// LW_CHECK fails if a read does not find the expected tensor.
class SymbolicPass {
 public:
  SymbolicPass(const Model& model, bool training)
      : model_(model),
        plan_(model, training),
        training_(training),
        outputs_(plan_.output_floats.size(), kNone),
        gradients_(plan_.gradient_floats.size()),
        passed_(static_cast<std::size_t>(model.layers())) {
    for (int i = 0; i < model.layers(); ++i)
      trains_.push_back(model.first_parameter(i) < model.first_parameter(i + 1) ||
                        trains(model.input_of(i)) ||
                        (model.is_sum(i) && trains(model.other_input_of(i))));
    find_full_gradients();
  }

  void forward() {
    for (int i = 0; i < model_.layers(); ++i) {
      const int x = buffer_of(model_.input_of(i)), y = buffer_of(i);
      if (model_.layer(i).is_view()) {
        LW_CHECK(x == y, i, x, y);
        continue;
      }
      expect_output(model_.input_of(i), i);
      LW_CHECK(y != kNone && room(plan_.output_floats, y) >= floats(i), i, y);
      LW_CHECK(y != x || model_.layer(i).in_place(), i, y);
      outputs_[static_cast<std::size_t>(y)] = i;
      // A pass copies x to y, if they differ, before it adds the other input.
      if (model_.is_sum(i)) expect_output(model_.other_input_of(i), i);
    }
    expect_output(model_.layers() - 1, model_.layers());
  }

  void backward() {
    const int last = model_.layers() - 1;
    write(plan_.output_gradient, {floats(last), {{kLoss, 1}}});
    for (int layer = last; layer >= 0; --layer)
      for (const auto& op : plan_.backward[static_cast<std::size_t>(layer)]) execute(layer, op);
    for (int i = 0; i <= last; ++i)
      LW_CHECK(passed_[static_cast<std::size_t>(i)] == (trains(i) && !passes_on(i) ? 1 : 0), i,
               model_.layer_name(i), passed_[static_cast<std::size_t>(i)]);
  }

 private:
  static constexpr int kLoss = -1;
  /// The count of each term, by the layer whose backward computed it.
  using Terms = std::map<int, std::uint64_t>;
  struct Gradient {
    std::int64_t floats = 0;
    Terms terms;
  };

  void execute(int layer, const PassPlan::Op& op) {
    const Gradient from = read(op.from);
    if (op.kind == PassPlan::Op::Kind::layer) return backward_layer(layer, op, from);
    LW_CHECK(op.to != op.from && op.floats == from.floats, layer, op.to, op.floats);
    if (op.kind == PassPlan::Op::Kind::copy) return write(op.to, from);
    Gradient sum = read(op.to);
    LW_CHECK(sum.floats == op.floats, layer, op.floats);
    for (const auto& [term, times] : from.terms) sum.terms[term] += times;
    write(op.to, sum);
  }

  void backward_layer(int layer, const PassPlan::Op& op, const Gradient& dy) {
    const Layer& of = model_.layer(layer);
    LW_CHECK(!passes_on(layer) && trains(layer), layer);
    LW_CHECK(dy.floats == floats(layer), layer, dy.floats);
    LW_CHECK(dy.terms == full_[static_cast<std::size_t>(layer)], layer, model_.layer_name(layer));
    const int input = model_.input_of(layer);
    if (!of.in_place()) expect_output(input, layer);
    if (of.backward_reads_output()) expect_output(layer, layer);
    ++passed_[static_cast<std::size_t>(layer)];
    LW_CHECK((op.to != kNone) == trains(input), layer, op.to);
    LW_CHECK(op.to != op.from || of.in_place(), layer, op.to);
    if (op.to != kNone) write(op.to, {floats(input), {{layer, 1}}});
  }

  /// The terms of each output's gradient: one per layer that reads the output. Sums and views pass
  /// all terms of their own gradient on.
  void find_full_gradients() {
    full_.resize(static_cast<std::size_t>(model_.layers()));
    full_.back()[kLoss] = 1;
    const auto add = [&](int to, const Terms& terms) {
      for (const auto& [term, times] : terms)
        if (to != Model::kBatch) full_[static_cast<std::size_t>(to)][term] += times;
    };
    for (int i = model_.layers() - 1; i >= 0; --i) {
      const Terms terms = passes_on(i) ? full_[static_cast<std::size_t>(i)] : Terms{{i, 1}};
      add(model_.input_of(i), terms);
      if (model_.is_sum(i)) add(model_.other_input_of(i), terms);
    }
  }

  void expect_output(int layer, int reader) const {
    int writer = layer;
    while (writer != Model::kBatch && model_.layer(writer).is_view())
      writer = model_.input_of(writer);
    const int buffer = buffer_of(layer);
    LW_CHECK((buffer == kNone) == (writer == Model::kBatch), layer, reader, buffer);
    if (buffer != kNone)
      LW_CHECK(outputs_[static_cast<std::size_t>(buffer)] == writer, layer, reader, buffer, writer,
               training_);
  }

  Gradient read(int buffer) const {
    LW_CHECK(buffer != kNone);
    return gradients_[static_cast<std::size_t>(buffer)];
  }
  void write(int buffer, const Gradient& value) {
    LW_CHECK(buffer != kNone && room(plan_.gradient_floats, buffer) >= value.floats, buffer);
    gradients_[static_cast<std::size_t>(buffer)] = value;
  }

  /// Sums and views have no backward: the gradient of their output is that of their input.
  bool passes_on(int layer) const { return model_.is_sum(layer) || model_.layer(layer).is_view(); }
  bool trains(int layer) const {
    return layer != Model::kBatch && trains_[static_cast<std::size_t>(layer)];
  }
  std::int64_t floats(int layer) const { return model_.output_of(layer).count(); }
  int buffer_of(int layer) const {
    return layer == Model::kBatch ? kNone : plan_.output[static_cast<std::size_t>(layer)];
  }
  static std::int64_t room(const std::vector<std::int64_t>& buffers, int buffer) {
    return buffers[static_cast<std::size_t>(buffer)];
  }

  const Model& model_;
  PassPlan plan_;
  bool training_;
  std::vector<bool> trains_;  // per layer: something at or before it is trained
  std::vector<Terms> full_;   // per layer: the gradient of its output
  std::vector<int> outputs_;  // per buffer: the layer whose output it holds
  std::vector<Gradient> gradients_;
  std::vector<int> passed_;  // per layer: how often backward went through it
};

PassPlan plan_of(const Layers& layers, bool training, std::int64_t width = 4) {
  return PassPlan(*regressor(layers, {width}, width), training);
}

}  // namespace

TEST_CASE("in evaluation no output is overwritten before its last reader", "[pass_plan]") {
  for (std::uint64_t seed = 0; seed < kModels; ++seed) {
    CAPTURE(seed);
    const auto model = random_model(seed);
    REQUIRE_NOTHROW(SymbolicPass(*model, false).forward());
  }
}

TEST_CASE("in training every read of forward and backward finds the expected tensor",
          "[pass_plan]") {
  for (std::uint64_t seed = 0; seed < kModels; ++seed) {
    CAPTURE(seed);
    const auto model = random_model(seed);
    SymbolicPass pass(*model, true);
    REQUIRE_NOTHROW(pass.forward());
    REQUIRE_NOTHROW(pass.backward());
  }
}

TEST_CASE("in training an in-place layer overwrites an output that no backward reads",
          "[pass_plan]") {
  using Buffers = std::vector<int>;
  CHECK(plan_of({linear(4), relu()}, true).output == Buffers{0, 0});
  CHECK(plan_of({linear(4), dropout(), relu()}, true).output == Buffers{0, 0, 0});
  CHECK(plan_of({linear(4), relu(), dropout()}, true).output == Buffers{0, 0, 1});
  CHECK(plan_of({linear(4), gelu(), relu()}, true).output == Buffers{0, 1, 1});
  CHECK(plan_of({relu(), relu()}, true).output == Buffers{0, 1});  // the batch is not overwritten
}

TEST_CASE("an output with two readers is kept until both have read it", "[pass_plan]") {
  using Buffers = std::vector<int>;
  const Layers layers = {linear(4), residual({relu(), linear(4), tanh_layer()}), relu()};
  CHECK(plan_of(layers, true).output == Buffers{0, 1, 2, 2, 3, 3});  // tanh's backward reads its y
  CHECK(plan_of(layers, false).output == Buffers{0, 1, 2, 2, 2, 2});
}

TEST_CASE("evaluation of a deep chain needs two buffers, and one more per open residual block",
          "[pass_plan]") {
  Layers chain, blocks;
  for (int i = 0; i < 30; ++i) {
    chain.insert(chain.end(), {linear(4), gelu(), relu()});
    blocks.push_back(residual({linear(4), gelu(), linear(4)}));
  }
  CHECK(plan_of(chain, false).output_floats == std::vector<std::int64_t>{4, 4});
  CHECK(plan_of(blocks, false).output_floats.size() == 3);
  CHECK(plan_of({residual(blocks)}, false).output_floats.size() == 3);
  CHECK(plan_of({linear(4), residual(blocks)}, false).output_floats.size() == 4);
  CHECK(plan_of(chain, true).output_floats.size() == 60);
}

TEST_CASE("gradients of a deep chain need two buffers, as large as the largest outputs",
          "[pass_plan]") {
  Layers chain;
  for (const std::uint32_t width : {9, 7, 8, 5, 6, 4}) chain.push_back(linear(width));
  const PassPlan plan = plan_of(chain, true);
  CHECK(plan.gradient_floats == std::vector<std::int64_t>{7, 9});  // alternating outputs
  CHECK(plan_of(chain, false).gradient_floats.empty());
}

TEST_CASE("backward stops at the first trained layer", "[pass_plan]") {
  const PassPlan plan = plan_of({gelu(), linear(4), relu()}, true);
  CHECK(plan.backward[0].empty());
  REQUIRE(plan.backward[1].size() == 1);
  CHECK(plan.backward[1][0].to == kNone);
  REQUIRE(plan.backward[2].size() == 1);
  CHECK(plan.backward[2][0].to == plan.backward[1][0].from);
}
