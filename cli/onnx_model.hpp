#pragma once
// Exports a trained model as an ONNX file (https://onnx.ai).
#include <string>

#include "runtime/trained/model.hpp"

namespace leeway::cli {

/// Writes the model with its preprocessing to `path`. Its input "x" are raw numbers (N, columns) or
/// pixels (N, C, H, W) as floats. Its output "probabilities" are those of the classes (N, classes),
/// or "prediction" the numbers in the unit of the data (N, outputs). NaN stands for a missing
/// number. Errors: layers and columns that cannot be exported, by name; a system error.
Status write_onnx(const TrainedModel& trained, const std::string& path);

}  // namespace leeway::cli
