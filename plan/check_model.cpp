// Checks of a model's layers for validate().
#include "core/limits.hpp"
#include "plan/checks.hpp"

namespace leeway {
namespace {

/// The weights that kMaxBlocks blocks can hold.
constexpr std::uint64_t kMaxWeights =
    std::uint64_t{limits::kMaxBlocks} * (limits::kMaxBlockBytes / sizeof(float));

/// Visits the layers in order.
class LayersCheck {
 public:
  explicit LayersCheck(Checks& checks) : checks_(checks) {}

  void check_layers(const std::vector<plan::Layer>& layers, const std::string& place) {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (++count_ > limits::kMaxBuckets) return;
      place_ = concat(place, '[', i, ']');
      std::visit(*this, layers[i]);
    }
  }
  void check_totals() {
    checks_.require(count_ <= limits::kMaxBuckets, "model: has more than ", limits::kMaxBuckets,
                    " layers; give at most ", limits::kMaxBuckets);
    checks_.require(has_weights_, "model: has nothing to train; add a linear layer");
  }

  void operator()(const plan::Linear& in) {
    has_weights_ = true;
    checks_.require((inputs_ + 1) * in.outputs <= kMaxWeights, place_, ".linear: ", inputs_,
                    " inputs and ", in.outputs, " outputs need more than ", kMaxWeights,
                    " weights; give fewer outputs");
    inputs_ = in.outputs;
  }
  void operator()(const plan::CustomLayer&) {
    has_weights_ = true;
    inputs_ = 0;
  }
  void operator()(const plan::Conv2d& in) {
    has_weights_ = true;
    checks_.require(in.padding < in.kernel, name("conv2d.padding"), ": ", in.padding,
                    " is not allowed; give less than the kernel, ", in.kernel);
    checks_.require(in.groups >= 1 && in.outputs % in.groups == 0, name("conv2d.groups"), ": ",
                    in.groups, " does not divide the ", in.outputs, " outputs; give one that does");
    const std::uint64_t kernel = std::uint64_t{in.kernel} * in.kernel;
    checks_.require(in.outputs <= kMaxWeights / kernel, place_, ".conv2d: ", in.outputs,
                    " outputs of a ", in.kernel, 'x', in.kernel, " kernel need more than ",
                    kMaxWeights, " weights; give fewer outputs");
    inputs_ = 0;
  }
  void operator()(const plan::MaxPool2d& in) { check_pool("max_pool2d", in); }
  void operator()(const plan::AvgPool2d& in) { check_pool("avg_pool2d", in); }
  void operator()(const plan::BatchNorm&) { has_weights_ = true; }
  void operator()(const plan::LayerNorm&) { has_weights_ = true; }
  void operator()(const plan::Embedding& in) {
    has_weights_ = true;
    checks_.require(std::uint64_t{in.vocabulary} * in.features <= kMaxWeights, place_,
                    ".embedding: a vocabulary of ", in.vocabulary, " with ", in.features,
                    " features each needs more than ", kMaxWeights,
                    " weights; give fewer features");
    inputs_ = 0;
  }
  void operator()(const plan::Positions&) { has_weights_ = true; }
  void operator()(const plan::Attention&) { inputs_ = inputs_ / 3; }
  void operator()(const plan::Unembedding&) { inputs_ = 0; }
  void operator()(const plan::Residual& in) {
    const std::string here = place_;
    checks_.require(depth_ < limits::kMaxLayerDepth, here, ".residual: is nested deeper than ",
                    limits::kMaxLayerDepth, " residual layers; nest them less deeply");
    checks_.require(!in.body.empty(), here,
                    ".residual.body: has no layers; give at least one, such as conv2d");
    if (depth_ == limits::kMaxLayerDepth) return;
    ++depth_;
    const std::uint64_t inputs = inputs_;
    check_layers(in.shortcut, here + ".residual.shortcut");
    inputs_ = inputs;
    check_layers(in.body, here + ".residual.body");
    --depth_;
  }
  template <class WithoutSettings>
  void operator()(const WithoutSettings&) {}

 private:
  std::string name(const char* field) const { return concat(place_, '.', field); }
  template <class Pool>
  void check_pool(const char* kind, const Pool& in) {
    checks_.require(in.padding <= in.kernel / 2, place_, '.', kind, ".padding: ", in.padding,
                    " is not allowed; give at most half the kernel, ", in.kernel / 2);
    inputs_ = 0;
  }

  Checks& checks_;
  std::string place_;         // place of the current layer
  std::uint64_t inputs_ = 0;  // inputs of the next layer; 0 if they depend on the data
  std::uint64_t count_ = 0;
  std::uint32_t depth_ = 0;
  bool has_weights_ = false;
};

}  // namespace

void check_model(Checks& checks, const Plan& plan) {
  checks.require(!plan.model.empty(), "model: has no layers; give at least one linear layer");
  LayersCheck layers(checks);
  layers.check_layers(plan.model, "model");
  layers.check_totals();
}

}  // namespace leeway
