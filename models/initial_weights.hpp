#pragma once
// Initial weights from a file, instead of random ones.
#include <span>
#include <string>
#include <vector>

#include "core/expected.hpp"
#include "models/model.hpp"
#include "plan/values.hpp"
#include "tensor/blob.hpp"

namespace leeway {

struct InitialWeights {
  std::vector<Blob> values;  // per parameter: f32, row-major; empty: it stays random
  /// What was converted, left out or stays random, for the user.
  std::vector<std::string> notes;
};

/// Reads the values of `parameters` from a safetensors file. F64, F16 and BF16 are converted.
/// PyTorch's batch counters (`num_batches_tracked`) and integers that no parameter needs are left
/// out. Names are changed by `tuning.init_map`; then all other names and shapes must be those of
/// the parameters, unless `tuning.partial` is set. The error lists all tensors that are missing,
/// unknown or mismatched.
Expected<InitialWeights> load_initial_weights(const std::string& path,
                                              std::span<const Parameter> parameters,
                                              const plan::FineTuning& tuning = {});

}  // namespace leeway
