#include "tests/models/support.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

constexpr auto kSigmoid = plan::Loss::sigmoid_cross_entropy;

/// The error of building these layers for samples of shape `input`.
std::string refusal(const Layers& layers, const Shape& input) {
  return error_of(layers, kSoftmax, input, 10, 0);
}

}  // namespace

TEST_CASE("a layer for images refuses other samples", "[model]") {
  CHECK(refusal({conv2d(8, 3)}, {784}) ==
        "model: layer 0 (conv2d) got samples of shape 784 and needs images, channels x height x "
        "width; put it before any flatten");
  CHECK(refusal({flatten(), linear(4), max_pool(2)}, {1, 28, 28}) ==
        "model: layer 2 (max_pool2d) got samples of shape 4 and needs images, channels x height x "
        "width; put it before any flatten");
  CHECK(refusal({linear(4), global_avg_pool()}, {5, 6}) ==
        "model: layer 1 (avg_pool2d) got samples of shape 5x4 and needs images, channels x height "
        "x width; put it before any flatten");
}

TEST_CASE("the error for a window larger than its image names the sizes", "[model]") {
  CHECK(refusal({conv2d(8, 3), conv2d(8, 5)}, {1, 6, 6}) ==
        "model: layer 1 (conv2d) got samples of shape 8x4x4 and needs images of at least 5x5; give "
        "it a smaller kernel or more padding");
  CHECK(refusal({conv2d(8, 9, {.padding = 1})}, {1, 28, 6}) ==
        "model: layer 0 (conv2d) got samples of shape 1x28x6 and needs images of at least 7x7; "
        "give it a smaller kernel or more padding");
  CHECK(refusal({max_pool(3)}, {1, 2, 3}) ==
        "model: layer 0 (max_pool2d) got samples of shape 1x2x3 and needs images of at least 3x3; "
        "give it a smaller kernel or more padding");
  CHECK(refusal({conv2d(8, 9, {.padding = 2}), flatten(), linear(10)}, {1, 5, 5}).empty());
}

TEST_CASE("pooling of whole images requires square images", "[model]") {
  CHECK(refusal({global_avg_pool()}, {3, 4, 5}) ==
        "model: layer 0 (avg_pool2d) got samples of shape 3x4x5 and pools whole images only if "
        "they are square; give it a kernel");
}

TEST_CASE("groups that do not divide the channels are refused", "[model]") {
  CHECK(refusal({conv2d(8, 3, {.groups = 4})}, {6, 8, 8}) ==
        "model: layer 0 (conv2d) got samples of shape 6x8x8, whose 6 channels do not divide into 4 "
        "groups; choose groups that divide both channels and outputs");
}

TEST_CASE("layers for vectors refuse images", "[model]") {
  CHECK(refusal({conv2d(8, 3), linear(10)}, {1, 8, 8}) ==
        "model: layer 1 (linear) got samples of shape 8x6x6 and needs vectors; put a flatten layer "
        "before it");
  CHECK(refusal({layer_norm()}, {3, 8, 8}) ==
        "model: layer 0 (layer_norm) got samples of shape 3x8x8 and needs vectors or sequences of "
        "them; put a flatten layer before it");
  CHECK(refusal({embedding(100, 8)}, {3, 8}) ==
        "model: layer 0 (embedding) got samples of shape 3x8 and needs vectors of token numbers; "
        "make it the first layer");
  CHECK(refusal({batch_norm()}, {5, 4}) ==
        "model: layer 0 (batch_norm) got samples of shape 5x4 and needs images or vectors");
}

TEST_CASE("a residual block whose branches end in different shapes is refused", "[model]") {
  const std::string advice =
      ", which cannot be added; make a shortcut of one conv2d with the body's outputs and stride";
  CHECK(refusal({conv2d(8, 3), residual({conv2d(16, 3, {.stride = 2, .padding = 1})})},
                {1, 10, 10}) ==
        "model: layer 1 (residual): its body gives samples of shape 16x4x4 and its shortcut 8x8x8" +
            advice);
  CHECK(refusal({residual({linear(6)}, {linear(7)})}, {5}) ==
        "model: layer 0 (residual): its body gives samples of shape 6 and its shortcut 7" + advice);
  CHECK(refusal({residual({flatten()})}, {1, 2, 3}) ==
        "model: layer 0 (residual): its body gives samples of shape 6 and its shortcut 1x2x3" +
            advice);
}

TEST_CASE("an error inside of residual blocks names the path to the layer", "[model]") {
  CHECK(refusal({linear(5), residual({linear(5), residual({}, {gelu(), max_pool(2)})})}, {5}) ==
        "model: layer 1.body.1.shortcut.1 (max_pool2d) got samples of shape 5 and needs images, "
        "channels x height x width; put it before any flatten");
  CHECK(refusal({residual({residual({linear(6)})})}, {5}) ==
        "model: layer 0.body.0 (residual): its body gives samples of shape 6 and its shortcut 5, "
        "which cannot be added; make a shortcut of one conv2d with the body's outputs and stride");
  CHECK(refusal({residual({conv2d(0, 3)})}, {1, 8, 8}) ==
        "model: layer 0.body.0: conv2d: outputs is 0; give it at least 1, for example outputs = "
        "64");
}

TEST_CASE("names of layers in residual blocks contain their path", "[model]") {
  const auto model = classifier(
      {linear(5), residual({linear(4), relu(), residual({linear(4)})}, {linear(4)}), linear(3)},
      {5}, 3);
  std::vector<std::string> layers, parameters;
  for (int i = 0; i < model->layers(); ++i) layers.push_back(model->layer_name(i));
  for (const auto& parameter : model->parameters())
    if (parameter.name.ends_with("weight")) parameters.push_back(parameter.name);
  CHECK(layers == std::vector<std::string>{
                      "layer 0 (linear)", "layer 1.body.0 (linear)", "layer 1.body.1 (relu)",
                      "layer 1.body.2.body.0 (linear)", "layer 1.body.2 (sum)",
                      "layer 1.shortcut.0 (linear)", "layer 1 (sum)", "layer 2 (linear)"});
  CHECK(parameters == std::vector<std::string>{"0.weight", "1.body.0.weight",
                                               "1.body.2.body.0.weight", "1.shortcut.0.weight",
                                               "2.weight"});
  CHECK(model->is_sum(4));
  CHECK(model->input_of(4) == 3);
  CHECK(model->other_input_of(4) == 2);
  CHECK(model->input_of(6) == 4);
  CHECK(model->other_input_of(6) == 5);
  CHECK(model->input_of(0) == Model::kBatch);
  CHECK(model->output_of(Model::kBatch) == Shape{5});
  CHECK(model->output_of(5) == Shape{4});
}

TEST_CASE("a loss that does not fit the data or the output is refused", "[model]") {
  CHECK(error_of({linear(4)}, kSigmoid, {5}, 10, 0) ==
        "loss: sigmoid_cross_entropy needs data with numeric targets, but this data has classes; "
        "use softmax_cross_entropy");
  CHECK(error_of({linear(2)}, kSigmoid, {5}, 2, 0) ==
        "model: its output is 2, but the data has two classes, which need one output; end it with "
        "linear, outputs = 1");
  CHECK(error_of({linear(2)}, kSigmoid, {5}, 0, 3) ==
        "model: its output is 2, but the data's targets are 3; end it with linear, outputs = 3");
  CHECK(error_of({conv2d(4, 3)}, kSoftmax, {1, 3, 3}, 4, 0) ==
        "model: its output is 4x1x1, but the data has 4 classes; end it with linear, outputs = 4");
  CHECK(error_of({conv2d(4, 3)}, kSquares, {1, 3, 3}, 0, 4) ==
        "model: its output is 4x1x1, but the data's targets are 4; end it with linear, outputs = "
        "4");
  CHECK(error_of({linear(1)}, kSigmoid, {5}, 2, 0).empty());
  CHECK(error_of({linear(3)}, kSigmoid, {5}, 0, 3).empty());
  CHECK(error_of({linear(2)}, kSquares, {3, 5}, 0, 6).empty());  // a sequence, 2 targets per token
}

TEST_CASE("empty samples are refused", "[model]") {
  CHECK(refusal({flatten(), linear(10)}, {1, 0, 28}) == "data: samples of shape 1x0x28 are empty");
}
