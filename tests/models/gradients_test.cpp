#include "tests/models/support.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

/// For models with relu or max pooling, the seeds keep units away from the kink, and the pixels of
/// a window apart, by more than the step of the finite difference.
double error_of_classifier(const Layers& layers, const Shape& input, std::uint64_t seed = 1) {
  Layers all = layers;
  all.push_back(linear(3));
  return worst_gradient_error(classifier(all, input, 3), 4, seed);
}

/// The same for layers of images, followed by flatten.
double error_of_images(Layers layers, const Shape& input, std::uint64_t seed = 1) {
  layers.push_back(flatten());
  return error_of_classifier(layers, input, seed);
}

}  // namespace

TEST_CASE("gradients equal finite differences: gelu, tanh and sigmoid", "[gradients]") {
  CHECK(error_of_classifier({linear(6), gelu(), linear(5), gelu()}, {4}) < kTolerance);
  CHECK(error_of_classifier({linear(6), tanh_layer(), linear(5), tanh_layer()}, {4}) < kTolerance);
  CHECK(error_of_classifier({linear(6), sigmoid_layer(), linear(5), sigmoid_layer()}, {4}) <
        kTolerance);
}

TEST_CASE("gradients equal finite differences: dropout, with the mask fixed by sample keys",
          "[gradients]") {
  CHECK(error_of_classifier({linear(8), dropout(0.4), linear(8), tanh_layer(), dropout(0.3)}, {4}) <
        kTolerance);
}

TEST_CASE("gradients equal finite differences: conv2d with padding, stride, groups, no bias",
          "[gradients]") {
  CHECK(error_of_images({conv2d(3, 3), tanh_layer(), conv2d(2, 2)}, {2, 5, 6}) < kTolerance);
  CHECK(error_of_images(
            {conv2d(4, 3, {.padding = 1}), tanh_layer(), conv2d(3, 3, {.stride = 2, .padding = 1})},
            {3, 5, 5}) < kTolerance);
  CHECK(error_of_images(
            {conv2d(4, 3, {.groups = 2}), tanh_layer(), conv2d(4, 2, {.groups = 4, .bias = false})},
            {2, 5, 5}) < kTolerance);
  CHECK(error_of_images({conv2d(4, 1, {.bias = false}), conv2d(3, 1, {.stride = 2})}, {1, 4, 4}) <
        kTolerance);
}

TEST_CASE("gradients equal finite differences: max pooling", "[gradients]") {
  CHECK(error_of_images({conv2d(2, 3), max_pool(2)}, {1, 6, 6}, 1) < kTolerance);
  CHECK(error_of_images({conv2d(3, 2), plan::MaxPool2d{3, 2, 1}, conv2d(2, 2)}, {2, 5, 5}, 2) <
        kTolerance);
}

TEST_CASE("gradients equal finite differences: average pooling", "[gradients]") {
  CHECK(error_of_images({conv2d(2, 3), avg_pool(2)}, {1, 6, 6}) < kTolerance);
  CHECK(error_of_images({conv2d(3, 2), plan::AvgPool2d{3, 2, 1}, conv2d(2, 2)}, {2, 5, 5}) <
        kTolerance);
  CHECK(error_of_images({conv2d(5, 2), global_avg_pool()}, {2, 4, 4}) < kTolerance);
}

TEST_CASE("gradients equal finite differences: batch_norm of images and of vectors",
          "[gradients]") {
  CHECK(error_of_images({conv2d(3, 2, {.bias = false}), batch_norm(), tanh_layer()}, {2, 4, 4}) <
        kTolerance);
  CHECK(error_of_classifier({linear(5), batch_norm(), tanh_layer()}, {4}) < kTolerance);
  CHECK(error_of_classifier({batch_norm(), linear(5)}, {4}) < kTolerance);
}

TEST_CASE("gradients equal finite differences: layer_norm of vectors and of sequences",
          "[gradients]") {
  CHECK(error_of_classifier({linear(6), layer_norm(), tanh_layer()}, {4}) < kTolerance);
  CHECK(error_of_classifier({linear(6), layer_norm(), tanh_layer(), flatten()}, {3, 4}) <
        kTolerance);
}

TEST_CASE("gradients equal finite differences: linear on sequences", "[gradients]") {
  CHECK(error_of_classifier({linear(5), gelu(), linear(4), flatten()}, {3, 4}) < kTolerance);
  CHECK(worst_gradient_error(regressor({linear(5), tanh_layer(), linear(1)}, {4, 3}, 4), 3, 1) <
        kTolerance);
}

TEST_CASE("gradients equal finite differences: embedding of tokens", "[gradients]") {
  const auto model = classifier(
      {plan::Embedding{6, 4, plan::Init::xavier}, linear(4), tanh_layer(), flatten(), linear(3)},
      {5}, 3);
  RandomBatch data(*model, 4, 1);
  Rng rng(2);
  for (float& token : data.x) token = static_cast<float>(rng.below(5));  // the sixth never occurs
  CHECK(worst_gradient_error(model, data.batch, 1) < kTolerance);
}

TEST_CASE("gradients equal finite differences: residual blocks without a shortcut", "[gradients]") {
  CHECK(error_of_classifier({linear(5), residual({linear(6), tanh_layer(), linear(5)})}, {4}) <
        kTolerance);
  CHECK(error_of_classifier({residual({linear(4)}), tanh_layer()}, {4}) < kTolerance);
}

TEST_CASE("gradients equal finite differences: residual blocks with a shortcut", "[gradients]") {
  CHECK(error_of_classifier(
            {linear(5), residual({linear(6), tanh_layer(), linear(7)}, {linear(7)})}, {4}) <
        kTolerance);
  // The shortcut begins with an in-place layer but must not overwrite the body's input.
  CHECK(error_of_classifier(
            {linear(5), residual({linear(5), tanh_layer()}, {tanh_layer(), linear(5)})}, {4}) <
        kTolerance);
  CHECK(error_of_images({conv2d(2, 1), residual({conv2d(4, 3, {.stride = 2, .padding = 1}),
                                                 batch_norm(), tanh_layer()},
                                                {conv2d(4, 1, {.stride = 2}), batch_norm()})},
                        {2, 4, 4}, 2) < kTolerance);
}

TEST_CASE("gradients equal finite differences: nested residual blocks", "[gradients]") {
  CHECK(
      error_of_classifier({linear(5), residual({residual({linear(5), tanh_layer()}), linear(5),
                                                residual({gelu()}, {linear(5), sigmoid_layer()})})},
                          {4}) < kTolerance);
  CHECK(error_of_classifier({linear(5), residual({residual({}), tanh_layer()}, {residual({})})},
                            {4}) < kTolerance);
}

TEST_CASE("gradients equal finite differences: two consecutive residual blocks", "[gradients]") {
  CHECK(error_of_classifier({linear(5), residual({linear(5), tanh_layer()}),
                             residual({tanh_layer(), linear(5)}), tanh_layer()},
                            {4}) < kTolerance);
}

TEST_CASE("gradients equal finite differences: a residual body that ends in relu", "[gradients]") {
  CHECK(error_of_classifier({linear(5), residual({linear(5), relu()}), relu()}, {4}, 4) <
        kTolerance);
}

TEST_CASE("gradients equal finite differences: sigmoid cross entropy", "[gradients]") {
  const auto sigmoid = plan::Loss::sigmoid_cross_entropy;
  CHECK(worst_gradient_error(built({linear(5), tanh_layer(), linear(3)}, sigmoid, {4}, 0, 3), 4,
                             1) < kTolerance);
}

TEST_CASE("gradients equal finite differences: sigmoid cross entropy of two classes",
          "[gradients]") {
  const auto sigmoid = plan::Loss::sigmoid_cross_entropy;
  const auto model = built({linear(5), tanh_layer(), linear(1)}, sigmoid, {4}, 2, 0);
  RandomBatch data(*model, 6, 1);
  REQUIRE(std::count(data.labels.begin(), data.labels.end(), 1) % 6 != 0);
  data.batch.targets = nullptr;
  CHECK(worst_gradient_error(model, data.batch, 1) < kTolerance);
}

TEST_CASE("two classes as labels give the same loss as numeric targets", "[gradients]") {
  const auto model = built({linear(1)}, plan::Loss::sigmoid_cross_entropy, {4}, 2, 0);
  Memory memory(model);
  memory.initialize(1);
  RandomBatch data(*model, 9, 1);
  std::copy(data.labels.begin(), data.labels.end(), data.targets.begin());
  Pass pass(model, 9, false);
  const auto by_targets = pass.forward(data.batch, memory.weights());
  data.batch.targets = nullptr;
  const auto by_labels = pass.forward(data.batch, memory.weights());
  CHECK(by_labels.loss == by_targets.loss);
  CHECK(by_labels.correct == by_targets.correct);
  std::int64_t right = 0;
  for (std::size_t i = 0; i < 9; ++i) right += (pass.outputs()[i] > 0) == (data.labels[i] == 1);
  CHECK(by_labels.correct == right);
}
