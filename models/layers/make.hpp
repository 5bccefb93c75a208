#pragma once
// make_layer: builds a layer from the plan's description. Its implementation is the list of all
// built-in layers.
#include <memory>

#include "models/layer.hpp"

namespace leeway {

/// Facts about the model around a layer.
struct LayerContext {
  std::uint32_t salt = 0;  // separates the random draws of a model's layers
  int classes = 0;         // of the data; 0 for numeric targets
  Shape table;             // shape of the weight of the latest embedding; empty without one
};

/// Makes a built-in layer, or one added with register_layer(). The error names the invalid part of
/// the description.
Expected<std::unique_ptr<Layer>> make_layer(const plan::Layer& description,
                                            const LayerContext& context);

}  // namespace leeway
