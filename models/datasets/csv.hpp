#pragma once
// Data sets in CSV files: a header line, numbers, one named label column.
//
// Read as RFC 4180 has it (quotes, CRLF), with an optional UTF-8 byte order mark and blanks around
// numbers. Every defect is found before training and named as file:line:column, with what was found
// and what to do.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/expected.hpp"
#include "models/datasets/dataset.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// The content of one CSV file, label column apart.
struct CsvTable {
  std::vector<std::string> features;  // names of the F feature columns
  std::vector<double> x;              // (rows, F), each finite as a float
  std::vector<double> labels;         // (rows): targets, or the numbers of classes
  int classes = 0;                    // largest label + 1, or 0 for regression
};

/// What to read from a CSV file.
struct CsvFormat {
  std::string label;        // name of the label column
  bool regression = false;  // labels are numbers; otherwise integers from 0, the numbers of classes
  /// For test data, the training data: the same columns are found by name and put in the same
  /// order, and no label may lie beyond its classes.
  const CsvTable* train = nullptr;
};

/// Decodes a file's text: at least one feature and one row. `name` is for errors.
Expected<CsvTable> parse_csv(std::string_view text, const std::string& name,
                             const CsvFormat& format);

/// Reads, decodes and checks the files, sets a seeded share of the rows aside where there is no
/// test file, and normalises.
Expected<TrainTest> load_csv(const plan::Csv& source, std::uint64_t seed);

}  // namespace leeway
