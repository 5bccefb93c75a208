#pragma once
// Layers, losses, and complete models as lists of layers for Scenario::model.
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/words.hpp"

namespace leeway {

// ---- layers and losses ----

inline plan::Layer linear(std::uint32_t outputs, plan::Init init = plan::Init::he) {
  return plan::Linear{outputs, init};
}
/// Options of conv2d(64, 3, {.padding = 1}).
struct ConvOptions {
  std::uint32_t stride = 1, padding = 0, groups = 1;
  bool bias = true;
  plan::Init init = plan::Init::he;
};
/// A convolution with `outputs` channels and square kernels.
inline plan::Layer conv2d(std::uint32_t outputs, std::uint32_t kernel, ConvOptions options = {}) {
  return plan::Conv2d{outputs,        kernel,       options.stride, options.padding,
                      options.groups, options.bias, options.init};
}
/// Adjacent windows of kernel x kernel pixels; plan::MaxPool2d has more options.
inline plan::Layer max_pool(std::uint32_t kernel) {
  return plan::MaxPool2d{kernel, kernel, 0};
}
inline plan::Layer avg_pool(std::uint32_t kernel) {
  return plan::AvgPool2d{kernel, kernel, 0};
}
/// The mean of each channel's whole image.
inline plan::Layer global_avg_pool() {
  return plan::AvgPool2d{0, 1, 0};
}
inline plan::Layer batch_norm() {
  return plan::BatchNorm{};
}
inline plan::Layer layer_norm() {
  return plan::LayerNorm{};
}
inline plan::Layer relu() {
  return plan::Relu{};
}
inline plan::Layer gelu() {
  return plan::Gelu{};
}
/// Named tanh_layer because <cmath> has tanh.
inline plan::Layer tanh_layer() {
  return plan::Tanh{};
}
inline plan::Layer sigmoid_layer() {
  return plan::Sigmoid{};
}
/// Zeroes each element with this probability in training.
inline plan::Layer dropout(double probability = 0.5) {
  return plan::Dropout{probability};
}
/// A learned row of `features` numbers for each token, 0 to vocabulary - 1.
inline plan::Layer embedding(std::uint32_t vocabulary, std::uint32_t features) {
  return plan::Embedding{vocabulary, features};
}
/// Position embeddings: a learned row for each position, added to the token's features.
inline plan::Layer positions() {
  return plan::Positions{};
}
/// Causal attention over queries, keys and values side by side, the output of linear(3 * features).
inline plan::Layer attention(std::uint32_t heads) {
  return plan::Attention{heads};
}
/// Logits by the table of the embedding before it (tied weights): the last layer of a text model.
inline plan::Layer unembedding() {
  return plan::Unembedding{};
}
/// body(x) + shortcut(x); without a shortcut, body(x) + x.
inline plan::Layer residual(std::vector<plan::Layer> body, std::vector<plan::Layer> shortcut = {}) {
  return plan::Residual{std::move(body), std::move(shortcut)};
}
inline plan::Layer flatten() {
  return plan::Flatten{};
}
inline plan::Layer custom(std::string name, std::string arguments = "") {
  return plan::CustomLayer{std::move(name), std::move(arguments)};
}
inline plan::Loss softmax_cross_entropy() {
  return plan::Loss::softmax_cross_entropy;
}
inline plan::Loss mean_squared_error() {
  return plan::Loss::mean_squared_error;
}

/// For targets in 0..1, or for two classes with one output.
inline plan::Loss sigmoid_cross_entropy() {
  return plan::Loss::sigmoid_cross_entropy;
}

// ---- models ----

/// One linear layer on the flattened sample.
inline std::vector<plan::Layer> logistic_regression(std::uint32_t classes) {
  return {flatten(), linear(classes)};
}

/// A multi-layer perceptron: hidden layers of these widths, each followed by relu.
inline std::vector<plan::Layer> mlp(const std::vector<std::uint32_t>& hidden,
                                    std::uint32_t classes) {
  std::vector<plan::Layer> layers = {flatten()};
  for (const std::uint32_t width : hidden) {
    layers.push_back(linear(width));
    layers.push_back(relu());
  }
  layers.push_back(linear(classes));
  return layers;
}

/// LeNet-5 (LeCun et al. 1998) for 28x28 images, in the modern form with relu and max pooling.
inline std::vector<plan::Layer> lenet5(std::uint32_t classes) {
  return {conv2d(6, 5, {.padding = 2}),
          relu(),
          max_pool(2),
          conv2d(16, 5),
          relu(),
          max_pool(2),
          flatten(),
          linear(120),
          relu(),
          linear(84),
          relu(),
          linear(classes)};
}

/// Two stages in the style of VGG (Simonyan, Zisserman 2015): 3x3 convolutions that preserve the
/// size, each followed by pooling that halves it.
inline std::vector<plan::Layer> vgg_like(std::uint32_t classes) {
  return {conv2d(64, 3, {.padding = 1}),
          relu(),
          max_pool(2),
          conv2d(128, 3, {.padding = 1}),
          relu(),
          max_pool(2),
          flatten(),
          linear(256),
          relu(),
          linear(classes)};
}

/// Two 3x3 convolutions with a shortcut (He et al. 2016, figure 2). With stride 2, the shortcut is
/// a 1x1 convolution that gives the same shape.
inline plan::Layer residual_block(std::uint32_t outputs, std::uint32_t stride) {
  std::vector<plan::Layer> body = {
      conv2d(outputs, 3, {.stride = stride, .padding = 1, .bias = false}), batch_norm(), relu(),
      conv2d(outputs, 3, {.padding = 1, .bias = false}), batch_norm()};
  if (stride == 1) return residual(std::move(body));
  return residual(std::move(body),
                  {conv2d(outputs, 1, {.stride = stride, .bias = false}), batch_norm()});
}

/// The residual network of He et al. 2016, section 4.2, with n = 2: a stem of 16 channels, then
/// stages of two blocks with 16, 32 and 64 channels. The paper pads its shortcuts with zeros.
inline std::vector<plan::Layer> small_resnet(std::uint32_t classes) {
  std::vector<plan::Layer> layers = {conv2d(16, 3, {.padding = 1, .bias = false}), batch_norm(),
                                     relu()};
  for (const std::uint32_t channels : {16u, 32u, 64u}) {
    for (int block = 0; block < 2; ++block) {
      layers.push_back(residual_block(channels, block == 0 && channels > 16 ? 2 : 1));
      layers.push_back(relu());
    }
  }
  layers.insert(layers.end(), {global_avg_pool(), flatten(), linear(classes)});
  return layers;
}

/// Options of gpt({.layers = 4, .width = 256, .heads = 8}). The context is that of the data.
struct GptOptions {
  std::uint32_t layers = 2;
  std::uint32_t width = 128;
  std::uint32_t heads = 4;
  double dropout = 0.0;          // after the embedding, and on the output of each block
  std::uint32_t vocabulary = 0;  // 0: that of the data
};

/// The transformer of GPT-2 (Radford et al. 2019) with its initialisation, for sequences of tokens.
/// `layers` times attention and an MLP of four times the width, each in a residual block with a
/// layer norm first. Input and output embedding are tied. No dropout of the attention weights.
inline std::vector<plan::Layer> gpt(const GptOptions& options = {}) {
  constexpr double kDeviation = 0.02;
  const auto normal = [](std::uint32_t outputs, double deviation) -> plan::Layer {
    return plan::Linear{outputs, plan::Init::normal, true, deviation};
  };
  // The initial sum of all blocks' outputs does not grow with the number of blocks.
  const double of_shortcut = kDeviation / std::sqrt(2.0 * options.layers);
  const auto with_dropout = [&](std::vector<plan::Layer> layers) {
    if (options.dropout > 0) layers.push_back(dropout(options.dropout));
    return layers;
  };
  std::vector<plan::Layer> layers = with_dropout(
      {plan::Embedding{options.vocabulary, options.width, plan::Init::normal, kDeviation},
       plan::Positions{plan::Init::normal, kDeviation}});
  for (std::uint32_t block = 0; block < options.layers; ++block) {
    layers.push_back(
        residual(with_dropout({layer_norm(), normal(3 * options.width, kDeviation),
                               attention(options.heads), normal(options.width, of_shortcut)})));
    layers.push_back(residual(with_dropout({layer_norm(), normal(4 * options.width, kDeviation),
                                            gelu(), normal(options.width, of_shortcut)})));
  }
  layers.insert(layers.end(), {layer_norm(), unembedding()});
  return layers;
}

}  // namespace leeway
