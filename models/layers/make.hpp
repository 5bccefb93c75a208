#pragma once
// make_layer: from a plan's description to a layer. The one list of the layers there are.
#include <memory>

#include "models/layer.hpp"

namespace leeway {

/// A built-in layer, or one that register_layer knows. `salt` keeps the random numbers of a model's
/// layers apart. The error names what is wrong with the description.
Expected<std::unique_ptr<Layer>> make_layer(const plan::Layer& description, std::uint32_t salt);

}  // namespace leeway
