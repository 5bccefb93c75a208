#include "models/layers/make.hpp"

#include <map>
#include <mutex>

#include "core/text.hpp"
#include "kernels/executor.hpp"
#include "models/layers/activation.hpp"
#include "models/layers/attention.hpp"
#include "models/layers/conv2d.hpp"
#include "models/layers/dropout.hpp"
#include "models/layers/embedding.hpp"
#include "models/layers/flatten.hpp"
#include "models/layers/linear.hpp"
#include "models/layers/norm.hpp"
#include "models/layers/pool2d.hpp"
#include "models/layers/positions.hpp"
#include "models/layers/unembedding.hpp"
#include "models/model.hpp"

namespace leeway {

namespace {

using LayerOrError = Expected<std::unique_ptr<Layer>>;

struct Registry {
  std::mutex mutex;
  std::map<std::string, LayerFactory> makers;
};

Registry& registry() {
  static Registry& registry = *new Registry;  // usable until the last thread ends
  return registry;
}

template <class L, class... Args>
LayerOrError made(const Args&... args) {
  return std::unique_ptr<Layer>(std::make_unique<L>(args...));
}

Error not_zero(std::string_view layer, std::string_view what, std::string_view example) {
  return Error{
      concat(layer, ": ", what, " is 0; give it at least 1, for example ", what, " = ", example)};
}

struct Maker {
  const LayerContext& context;

  LayerOrError operator()(const plan::Linear& spec) const {
    if (spec.outputs == 0) return not_zero("linear", "outputs", "10");
    return made<Linear>(spec, context.precision);
  }
  LayerOrError operator()(const plan::Relu&) const { return made<Relu>(); }
  LayerOrError operator()(const plan::Flatten&) const { return made<Flatten>(); }
  LayerOrError operator()(const plan::Conv2d& spec) const {
    if (spec.outputs == 0) return not_zero("conv2d", "outputs", "64");
    return made<Conv2d>(spec, context.precision);
  }
  LayerOrError operator()(const plan::MaxPool2d& spec) const { return made<MaxPool2d>(spec); }
  LayerOrError operator()(const plan::AvgPool2d& spec) const { return made<AvgPool2d>(spec); }
  LayerOrError operator()(const plan::BatchNorm& spec) const { return made<BatchNorm>(spec); }
  LayerOrError operator()(const plan::LayerNorm& spec) const { return made<LayerNorm>(spec); }
  LayerOrError operator()(const plan::Gelu&) const {
    return made<ActivationLayer>(kernels::Activation::gelu);
  }
  LayerOrError operator()(const plan::Tanh&) const {
    return made<ActivationLayer>(kernels::Activation::tanh);
  }
  LayerOrError operator()(const plan::Sigmoid&) const {
    return made<ActivationLayer>(kernels::Activation::sigmoid);
  }
  LayerOrError operator()(const plan::Dropout& spec) const {
    return made<Dropout>(spec, context.salt);
  }
  LayerOrError operator()(plan::Embedding spec) const {
    if (spec.vocabulary == 0) {
      if (context.classes == 0)
        return Error{
            "embedding: vocabulary is 0, which means the data's number of classes, but this data "
            "has no classes; give the number of tokens, for example vocabulary = 1000"};
      spec.vocabulary = static_cast<std::uint32_t>(context.classes);
    }
    return made<Embedding>(spec);
  }
  LayerOrError operator()(const plan::Positions& spec) const { return made<Positions>(spec); }
  LayerOrError operator()(const plan::Attention& spec) const {
    if (spec.heads == 0) return not_zero("attention", "heads", "4");
    return made<Attention>(spec);
  }
  LayerOrError operator()(const plan::Unembedding&) const {
    if (context.table.rank() != 2)
      return Error{
          "unembedding: found no embedding before it; begin the model with an embedding, or use "
          "linear"};
    return made<Unembedding>(context.table, context.precision);
  }
  LayerOrError operator()(const plan::Residual&) const {
    return Error{"residual: not a layer; Model::build expands it"};
  }
  LayerOrError operator()(const plan::CustomLayer& custom) const {
    LayerFactory make = nullptr;
    std::vector<std::string> known;
    {
      auto& [mutex, makers] = registry();
      std::lock_guard lock(mutex);
      for (const auto& [name, maker] : makers) {
        known.push_back(name);
        if (name == custom.name) make = maker;
      }
    }
    if (!make && known.empty())
      return Error{concat("custom layer \"", custom.name,
                          "\" is not registered; call register_layer before the run")};
    if (!make)
      return Error{concat("custom layer \"", custom.name, "\" is not registered",
                          suggest(custom.name, known))};
    return make(custom.arguments);
  }
};

}  // namespace

void register_layer(const std::string& name, LayerFactory make) {
  LW_CHECK(!name.empty() && make, name);
  auto& [mutex, makers] = registry();
  std::lock_guard lock(mutex);
  makers[name] = make;
}

LayerOrError make_layer(const plan::Layer& description, const LayerContext& context) {
  return std::visit(Maker{context}, description);
}

}  // namespace leeway
