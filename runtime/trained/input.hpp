#pragma once
// Files with samples for a trained model: rows of a table, or images.
#include <cstdint>
#include <string>
#include <vector>

#include "core/expected.hpp"
#include "runtime/trained/model.hpp"

namespace leeway {

/// Samples as the model reads them.
struct InputSamples {
  std::int64_t count = 0;
  std::vector<float> x;               // (count, sample)
  std::vector<std::int32_t> classes;  // (count), if the file has the label column of a classifier
  std::vector<float> targets;         // (count), if it has that of a regression, as in training
};

/// How the label column of a table is used.
enum class Labels : std::uint8_t {
  ignored,
  required,
};

/// Reads a table with the columns that the model was trained with, in any order, or a file of
/// images in the IDX format, plain or gzipped. Other columns are ignored. Errors name the file, the
/// line and the column.
Expected<InputSamples> read_samples(const TrainedModel& trained, const std::string& path,
                                    Labels labels);

}  // namespace leeway
