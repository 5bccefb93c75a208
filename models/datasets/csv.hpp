#pragma once
// Data sets in CSV files: columns of numbers and texts, one of which is the label.
//
// The format is RFC 4180 (quotes, CRLF), with a choice of separators, an optional UTF-8 byte order
// mark and blanks around numbers; files may be gzipped. A column is one of numbers if its first
// value is a number, else one of texts. All errors are found before training. Each names
// file:line:column, the value found and what to do.
//
// Debian's libraries for CSV do not fit: fast-cpp-csv-parser fixes the number of columns at compile
// time, and libcsv reports neither the quotes of a field nor its place.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/expected.hpp"
#include "models/datasets/dataset.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// The content of one CSV file.
struct CsvTable {
  std::vector<std::string> features;  // names of the F feature columns
  std::vector<double> x;              // (rows, F): see values; NaN if missing
  std::vector<double> labels;         // (rows): targets, or class indices
  int classes = 0;                    // largest label + 1, or 0 for regression
  /// (F): for a column of texts its values, sorted; x holds their indices, and -1 for texts that
  /// the training data lacks. Empty for a column of numbers, each finite as a float.
  std::vector<std::vector<std::string>> values;
  std::vector<std::string> class_names;  // sorted, if the labels are texts
  std::string label;                     // name of the label column
};

/// Options for reading a CSV file.
struct CsvFormat {
  std::string label;        // name of the label column
  bool regression = false;  // labels are any numbers; otherwise class indices from 0, or texts
  /// For test data, the training data. Its columns are matched by name and put in its order, and
  /// every label must be one of its classes.
  const CsvTable* train = nullptr;
  char separator = ',';
  /// Otherwise columns are named by their number, from 1, and the label "label" is the last one.
  bool header = true;
  bool allow_missing = false;
  std::vector<std::string> text_columns;  // texts even if their first value is a number
};

/// Decodes a file's text. Requires at least one feature and one row. `name` is for errors.
Expected<CsvTable> parse_csv(std::string_view text, const std::string& name,
                             const CsvFormat& format);

/// Reads, decodes and checks the files, and normalises. Without a test file, a seeded share of the
/// rows becomes the test set.
Expected<TrainTest> load_csv(const plan::Csv& source, std::uint64_t seed);

}  // namespace leeway
