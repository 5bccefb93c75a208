#pragma once
// Exports a trained model to PyTorch, with its preprocessing.
#include <string>
#include <vector>

#include "runtime/trained/model.hpp"

namespace leeway {

/// Writes `model.py` and `weights.safetensors` into `folder`, which is created if it is missing.
/// The program needs only PyTorch: `python3 model.py FILE` prints what `leeway predict` prints, and
/// its load() returns the model as an nn.Module. Returns the paths. Errors: a layer of the scenario
/// program, which PyTorch lacks, and files that cannot be written.
Expected<std::vector<std::string>> export_torch(const TrainedModel& trained,
                                                const std::string& folder);

}  // namespace leeway
