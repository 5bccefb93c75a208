// What validate() requires of the layers of a model.
#include "core/limits.hpp"
#include "plan/checks.hpp"

namespace leeway {
namespace {

/// Weights that fit into all the blocks there may be.
constexpr std::uint64_t kMaxWeights =
    std::uint64_t{limits::kMaxBlocks} * (limits::kMaxBlockBytes / sizeof(float));
constexpr std::uint64_t kMaxWindow = 1024;       // pixels, of kernels and strides
constexpr std::uint64_t kMaxMaxPoolKernel = 15;  // the place in a window is kept in a byte

/// Goes through the layers in order.
class LayersCheck {
 public:
  explicit LayersCheck(Checks& checks) : checks_(checks) {}

  void all(const std::vector<plan::Layer>& layers, const std::string& place) {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (++count_ > limits::kMaxBuckets) return;
      place_ = concat(place, '[', i, ']');
      std::visit(*this, layers[i]);
    }
  }
  void totals() {
    checks_.require(count_ <= limits::kMaxBuckets, "model: more than ", limits::kMaxBuckets,
                    " layers are too many; give at most as many");
    checks_.require(has_weights_, "model: has nothing to train; add a linear layer");
  }

  void operator()(const plan::Linear& in) {
    has_weights_ = true;
    at_least_one("linear.outputs", in.outputs);
    positive("linear.deviation", in.deviation);
    checks_.require((inputs_ + 1) * in.outputs <= kMaxWeights, place_, ".linear: ", inputs_,
                    " inputs and ", in.outputs, " outputs need more than ", kMaxWeights,
                    " weights; give fewer outputs");
    inputs_ = in.outputs;
  }
  void operator()(const plan::CustomLayer& in) {
    has_weights_ = true;
    checks_.require(!in.name.empty(), place_,
                    ".custom.name: is empty; give the name that the layer is registered as");
    inputs_ = 0;
  }
  void operator()(const plan::Conv2d& in) {
    has_weights_ = true;
    at_least_one("conv2d.outputs", in.outputs);
    checks_.range(name("conv2d.kernel"), in.kernel, 1, kMaxWindow, "");
    checks_.range(name("conv2d.stride"), in.stride, 1, kMaxWindow, "");
    checks_.require(in.padding < in.kernel, name("conv2d.padding"), ": ", in.padding,
                    " is not allowed; give less than the kernel, ", in.kernel);
    checks_.require(in.groups >= 1 && in.outputs % in.groups == 0, name("conv2d.groups"), ": ",
                    in.groups, " does not divide the ", in.outputs, " outputs; give one that does");
    const std::uint64_t kernel = std::uint64_t{in.kernel} * in.kernel;
    checks_.require(kernel == 0 || in.outputs <= kMaxWeights / kernel, place_,
                    ".conv2d: ", in.outputs, " outputs of a ", in.kernel, 'x', in.kernel,
                    " kernel need more than ", kMaxWeights, " weights; give fewer outputs");
    inputs_ = 0;
  }
  void operator()(const plan::MaxPool2d& in) { pool("max_pool2d", in, 1, kMaxMaxPoolKernel); }
  void operator()(const plan::AvgPool2d& in) { pool("avg_pool2d", in, 0, kMaxWindow); }
  void operator()(const plan::BatchNorm& in) {
    has_weights_ = true;
    positive("batch_norm.epsilon", in.epsilon);
    checks_.number(name("batch_norm.momentum"), in.momentum, in.momentum > 0 && in.momentum <= 1,
                   "a number above 0, at most 1");
  }
  void operator()(const plan::LayerNorm& in) {
    has_weights_ = true;
    positive("layer_norm.epsilon", in.epsilon);
  }
  void operator()(const plan::Dropout& in) {
    const auto probability = static_cast<float>(in.probability);
    checks_.number(name("dropout.probability"), in.probability, probability >= 0 && probability < 1,
                   "a number from 0 to below 1");
  }
  void operator()(const plan::Embedding& in) {
    has_weights_ = true;
    at_least_one("embedding.features", in.features);
    positive("embedding.deviation", in.deviation);
    checks_.require(std::uint64_t{in.vocabulary} * in.features <= kMaxWeights, place_,
                    ".embedding: a vocabulary of ", in.vocabulary, " with ", in.features,
                    " features each needs more than ", kMaxWeights,
                    " weights; give fewer features");
    inputs_ = 0;
  }
  void operator()(const plan::Positions& in) {
    has_weights_ = true;
    positive("positions.deviation", in.deviation);
  }
  void operator()(const plan::Attention& in) {
    at_least_one("attention.heads", in.heads);
    inputs_ = inputs_ / 3;
  }
  void operator()(const plan::Unembedding&) { inputs_ = 0; }
  void operator()(const plan::Residual& in) {
    const std::string here = place_;
    checks_.require(depth_ < limits::kMaxLayerDepth, here, ".residual: lies deeper than ",
                    limits::kMaxLayerDepth,
                    " residual layers inside one another; nest them less deeply");
    checks_.require(!in.body.empty(), here,
                    ".residual.body: has no layers; give at least one, such as conv2d");
    if (depth_ == limits::kMaxLayerDepth) return;
    ++depth_;
    const std::uint64_t inputs = inputs_;
    all(in.shortcut, here + ".residual.shortcut");
    inputs_ = inputs;
    all(in.body, here + ".residual.body");
    --depth_;
  }
  template <class WithoutSettings>
  void operator()(const WithoutSettings&) {}

 private:
  std::string name(const char* field) const { return concat(place_, '.', field); }
  void at_least_one(const char* field, std::uint32_t value) {
    checks_.require(value >= 1, place_, '.', field, ": 0 is not allowed; give 1 or more");
  }
  void positive(const char* field, double value) {
    // Kernels compute with floats, which keep less of a small number.
    checks_.number(name(field), value, static_cast<float>(value) > 0, "a number above 0");
  }
  template <class Pool>
  void pool(const std::string& kind, const Pool& in, std::uint64_t least, std::uint64_t most) {
    const std::string prefix = concat(place_, '.', kind, '.');
    checks_.range(prefix + "kernel", in.kernel, least, most, "");
    checks_.range(prefix + "stride", in.stride, 1, kMaxWindow, "");
    checks_.require(in.padding <= in.kernel / 2, prefix, "padding: ", in.padding,
                    " is not allowed; give at most half the kernel, ", in.kernel / 2);
    inputs_ = 0;
  }

  Checks& checks_;
  std::string place_;         // of the layer that is looked at
  std::uint64_t inputs_ = 0;  // of the next layer; 0: not known before the data is
  std::uint64_t count_ = 0;
  std::uint32_t depth_ = 0;
  bool has_weights_ = false;
};

}  // namespace

void check_model(Checks& checks, const Plan& plan) {
  checks.require(!plan.model.empty(), "model: has no layers; give at least one linear layer");
  LayersCheck layers(checks);
  layers.all(plan.model, "model");
  layers.totals();
}

}  // namespace leeway
