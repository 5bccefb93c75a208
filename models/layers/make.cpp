#include "models/layers/make.hpp"

#include <map>
#include <mutex>

#include "core/text.hpp"
#include "models/layers/flatten.hpp"
#include "models/layers/linear.hpp"
#include "models/layers/relu.hpp"
#include "models/model.hpp"

namespace leeway {

namespace {

using MadeLayer = Expected<std::unique_ptr<Layer>>;

struct Registry {
  std::mutex mutex;
  std::map<std::string, LayerFactory> makers;
};

Registry& registry() {
  static Registry& registry = *new Registry;  // usable until the last thread ends
  return registry;
}

struct Maker {
  MadeLayer operator()(const plan::Linear& linear) const {
    if (linear.outputs == 0)
      return Error{"linear: outputs is 0; give it at least 1, for example outputs = 10"};
    return std::unique_ptr<Layer>(std::make_unique<Linear>(linear.outputs, linear.init));
  }
  MadeLayer operator()(const plan::Relu&) const {
    return std::unique_ptr<Layer>(std::make_unique<Relu>());
  }
  MadeLayer operator()(const plan::Flatten&) const {
    return std::unique_ptr<Layer>(std::make_unique<Flatten>());
  }
  MadeLayer operator()(const plan::CustomLayer& custom) const {
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
                          "\" is unknown, none is registered; call register_layer before the run")};
    if (!make)
      return Error{concat("custom layer \"", custom.name,
                          "\" is not among those given to register_layer",
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

MadeLayer make_layer(const plan::Layer& description) {
  return std::visit(Maker{}, description);
}

}  // namespace leeway
