// Models of tokens: a label for each position of a sequence, attention, and tied weights.
#include "runtime/models.hpp"
#include "tests/models/support.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

constexpr int kVocabulary = 7;
constexpr std::int64_t kContext = 5;

std::shared_ptr<const Model> text_model(const Layers& layers, std::int64_t context = kContext) {
  auto model =
      Model::build(layers, plan::Loss::softmax_cross_entropy, {context}, kVocabulary, 0, context);
  LW_CHECK(model.has_value(), model ? "" : model.error().text);
  return *model;
}

std::string refusal(const Layers& layers, std::int64_t labels = kContext) {
  const auto model =
      Model::build(layers, plan::Loss::softmax_cross_entropy, {kContext}, kVocabulary, 0, labels);
  return model ? "" : model.error().text;
}

/// Random tokens, each with a random label.
struct RandomText {
  RandomText(const Model& model, std::int64_t size, std::uint64_t seed) : data(model, size, seed) {
    Rng rng(seed);
    const std::int64_t tokens = size * model.labels();
    data.labels.clear();
    for (std::int64_t i = 0; i < tokens; ++i) {
      data.x[static_cast<std::size_t>(i)] = static_cast<float>(rng.below(kVocabulary));
      data.labels.push_back(static_cast<std::int32_t>(rng.below(kVocabulary)));
    }
    data.batch.labels = data.labels.data();
  }
  RandomBatch data;
};

double error_of(const Layers& layers) {
  const auto model = text_model(layers);
  const RandomText text(*model, 3, 1);
  return worst_gradient_error(model, text.data.batch, 1);
}

const plan::Layer kTable = plan::Embedding{0, 6, plan::Init::xavier};
const plan::Layer kPositions = plan::Positions{plan::Init::xavier};

/// The index of the parameter with this name.
std::size_t index_of(const Model& model, const std::string& name) {
  for (std::size_t i = 0; i < model.parameters().size(); ++i)
    if (model.parameters()[i].name == name) return i;
  LW_CHECK(false, name);
}

}  // namespace

TEST_CASE("gradients equal finite differences: positions, and a label for each token",
          "[gradients]") {
  CHECK(error_of({kTable, kPositions, linear(5), tanh_layer(), linear(kVocabulary)}) < kTolerance);
  // In a residual block, which also reads the input of positions.
  CHECK(error_of({kTable, residual({plan::Positions{plan::Init::xavier}, tanh_layer()}),
                  linear(kVocabulary)}) < kTolerance);
}

TEST_CASE("gradients equal finite differences: attention with one head and with several",
          "[gradients]") {
  for (const std::uint32_t heads : {1u, 2u, 4u})
    CHECK(error_of({kTable, kPositions, linear(12), attention(heads), linear(kVocabulary)}) <
          kTolerance);
}

TEST_CASE("gradients equal finite differences: tied weights of the first and the last layer",
          "[gradients]") {
  CHECK(error_of({kTable, tanh_layer(), unembedding()}) < kTolerance);
  CHECK(error_of({kTable, kPositions, linear(6), gelu(), linear(6), unembedding()}) < kTolerance);
}

TEST_CASE("gradients equal finite differences: gpt, with dropout and without", "[gradients]") {
  for (const double dropout : {0.0, 0.2}) {
    Layers layers = gpt({.layers = 1, .width = 6, .heads = 2, .dropout = dropout});
    // Larger weights than gpt's initial ones, so that each affects the loss.
    layers[0] = kTable;
    layers[1] = kPositions;
    CHECK(error_of(layers) < kTolerance);
  }
}

TEST_CASE("the gradient of tied weights is the sum of both gradients", "[tied]") {
  kernels::use_one_compute_thread();
  const Layers between = {linear(6), tanh_layer()};
  const auto with_output = [&](plan::Layer output) {
    Layers layers = {kTable};
    layers.insert(layers.end(), between.begin(), between.end());
    layers.push_back(std::move(output));
    return text_model(layers);
  };
  const auto tied = with_output(unembedding());
  const auto untied = with_output(plan::Linear{kVocabulary, plan::Init::xavier, false});
  REQUIRE(tied->parameters().size() == 3);
  REQUIRE(tied->borrowed_parameter(3) == 0);
  REQUIRE(tied->borrowed_parameter(0) == Model::kNone);
  // Small blocks, so that the sum handles a table that is split by rows.
  Memory one(tied, 100), other(untied);
  one.initialize(1);
  other.initialize(1);
  other.set(index_of(*untied, "3.weight"), one.weight(0));
  const RandomText text(*tied, 4, 1);
  Pass tied_pass(tied, 4, true), untied_pass(untied, 4, true);
  const auto a = tied_pass.forward(text.data.batch, one.weights());
  const auto b = untied_pass.forward(text.data.batch, other.weights());
  CHECK(std::abs(a.loss - b.loss) < 1e-6);
  CHECK(a.correct == b.correct);
  run_backward(tied_pass, one);
  run_backward(untied_pass, other);
  const Floats sum = one.gradient(0), as_input = other.gradient(0),
               as_output = other.gradient(index_of(*untied, "3.weight"));
  const float* const borrowed = tied_pass.borrowed_gradient(3);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    CHECK(std::abs(sum[i] - (as_input[i] + as_output[i])) < 1e-6f);
    CHECK(std::abs(borrowed[i] - as_output[i]) < 1e-6f);
  }
}

TEST_CASE("gpt begins at the loss of random guessing and overfits a small text", "[gpt]") {
  kernels::use_one_compute_thread();
  const auto model = text_model(gpt({.layers = 2, .width = 16, .heads = 2}), 24);
  Memory memory(model);
  memory.initialize(1);
  const RandomText text(*model, 2, 1);
  Pass pass(model, 2, true);
  const double first = descend(pass, memory, text.data.batch, 0.1f);
  CHECK(std::abs(first - std::log(double{kVocabulary})) < 0.1);
  for (int step = 0; step < 600; ++step) descend(pass, memory, text.data.batch, 0.2f);
  const auto last = pass.forward(text.data.batch, memory.weights());
  CHECK(last.loss < 0.3 * first);
  CHECK(last.correct > 40);  // of 48 characters
}

TEST_CASE("gpt's initial weights are those of GPT-2", "[gpt]") {
  const auto model = text_model(gpt({.layers = 8, .width = 64, .heads = 4}));
  const auto deviation_of = [&](const std::string& name) {
    const std::size_t index = index_of(*model, name);
    Floats values(static_cast<std::size_t>(model->parameters()[index].spec.shape.count()));
    model->initialize(static_cast<int>(index), 1, values.data());
    double squares = 0;
    for (const float value : values) squares += static_cast<double>(value) * value;
    return std::sqrt(squares / static_cast<double>(values.size()));
  };
  CHECK(deviation_of("0.weight") == Approx(0.02).epsilon(0.15));
  CHECK(deviation_of("1.weight") == Approx(0.02).epsilon(0.15));
  CHECK(deviation_of("2.body.1.weight") == Approx(0.02).epsilon(0.05));
  CHECK(deviation_of("2.body.3.weight") == Approx(0.005).epsilon(0.05));
  CHECK(deviation_of("3.body.3.weight") == Approx(0.005).epsilon(0.05));
  CHECK(deviation_of("2.body.1.bias") == 0);
}

TEST_CASE("errors of text models say what to change", "[model]") {
  CHECK(refusal({kTable, linear(9), attention(2), linear(kVocabulary)}) ==
        "model: layer 2 (attention) has 2 heads, which do not divide its 3 features; give a number "
        "of heads that does");
  CHECK(refusal({kTable, linear(10), attention(2)}) ==
        "model: layer 2 (attention) got samples of shape 5x10 and needs sequences of queries, keys "
        "and values side by side; put linear with three times the features before it");
  CHECK(refusal({kTable, linear(3 * 514), attention(2)}) ==
        "model: layer 2 (attention) has 257 features per head, at most 256 are allowed; give it at "
        "least 3 heads");
  CHECK(refusal({linear(6), unembedding()}) ==
        "model: layer 1: unembedding: found no embedding before it; begin the model with an "
        "embedding, or use linear");
  CHECK(refusal({kTable, linear(5), unembedding()}) ==
        "model: layer 2 (unembedding) got samples of shape 5x5 and needs rows of 6 features, like "
        "the embedding; put linear, outputs = 6 before it");
  CHECK(refusal({positions()}) ==
        "model: layer 0 (positions) got samples of shape 5 and needs sequences; put it after an "
        "embedding");
  CHECK(refusal({kTable, linear(6)}) ==
        "model: its output is 5x6, but the data has 5 labels per sample and 7 classes; end it with "
        "unembedding, or linear, outputs = 7");
  CHECK(refusal({kTable, linear(7)}, 1) ==
        "model: its output is 5x7, but the data has 7 classes; end it with linear, outputs = 7");
  const auto numbers = Model::build({kTable}, plan::Loss::mean_squared_error, {kContext}, 0, 3, 1);
  REQUIRE_FALSE(numbers);
  CHECK(numbers.error().text ==
        "model: layer 0: embedding: vocabulary is 0, which means the data's number of classes, but "
        "this data has no classes; give the number of tokens, for example vocabulary = 1000");
}
