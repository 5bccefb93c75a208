#pragma once
// make_layer: from a plan's description to a layer. The one list of the layers there are.
#include <memory>

#include "models/layer.hpp"

namespace leeway {

/// What a layer's place in its model tells it.
struct LayerContext {
  std::uint32_t salt = 0;  // keeps the random numbers of a model's layers apart
  int classes = 0;         // of the data; 0 where it has numbers to predict
  Shape table;             // of the weight of the latest embedding before; empty: there is none
};

/// A built-in layer, or one that register_layer knows. The error names what is wrong with the
/// description.
Expected<std::unique_ptr<Layer>> make_layer(const plan::Layer& description,
                                            const LayerContext& context);

}  // namespace leeway
