#pragma once
// Weights to start from, read from a file instead of drawn from the seed.
#include <span>
#include <string>
#include <vector>

#include "core/expected.hpp"
#include "models/model.hpp"
#include "tensor/blob.hpp"

namespace leeway {

/// The values of each parameter from a safetensors file, by name: f32, row-major, in the order of
/// `parameters`. F16 and BF16 are converted. PyTorch's counters of batches seen
/// (`num_batches_tracked`) are passed over; all other names must be those of the parameters, and
/// their shapes as well. The error lists all that are missing, belong to no parameter, or do not
/// fit.
Expected<std::vector<Blob>> load_initial_weights(const std::string& path,
                                                 std::span<const Parameter> parameters);

inline Expected<std::vector<Blob>> load_initial_weights(const std::string& path,
                                                        const Model& model) {
  return load_initial_weights(path, model.parameters());
}

}  // namespace leeway
