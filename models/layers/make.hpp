#pragma once
// make_layer: builds a layer from the plan's description. Its implementation lists all built-in
// layers. Those that it gives the context's precision compute products in it: linear, unembedding
// and conv2d. Norms, softmax, attention, sums and losses compute in fp32, and shards update weights
// in fp32.
#include <memory>

#include "models/layer.hpp"

namespace leeway {

/// Facts about the model around a layer.
struct LayerContext {
  std::uint32_t salt = 0;                 // separates the random draws of a model's layers
  int classes = 0;                        // of the data; 0 for numeric targets
  Precision precision = Precision::fp32;  // of the layer's products
  Shape table;  // shape of the weight of the latest embedding; empty without one
};

/// Makes a built-in layer, or one added with register_layer(). The error names the invalid part of
/// the description.
Expected<std::unique_ptr<Layer>> make_layer(const plan::Layer& description,
                                            const LayerContext& context);

}  // namespace leeway
