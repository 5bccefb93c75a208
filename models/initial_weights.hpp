#pragma once
// Initial weights from a file, instead of random ones.
#include <span>
#include <string>
#include <vector>

#include "core/expected.hpp"
#include "models/model.hpp"
#include "tensor/blob.hpp"

namespace leeway {

/// Reads the values of `parameters` from a safetensors file: f32, row-major, in their order. F16
/// and BF16 are converted. PyTorch's batch counters (`num_batches_tracked`) are ignored; all other
/// names and shapes must be those of the parameters. The error lists all tensors that are missing,
/// unknown or mismatched.
Expected<std::vector<Blob>> load_initial_weights(const std::string& path,
                                                 std::span<const Parameter> parameters);

inline Expected<std::vector<Blob>> load_initial_weights(const std::string& path,
                                                        const Model& model) {
  return load_initial_weights(path, model.parameters());
}

}  // namespace leeway
