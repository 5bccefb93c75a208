#pragma once
// Preprocessing: how raw input becomes the input of a model, and what the outputs mean.
//
// The loader of a data set fills it in from the training data. Training and prediction encode with
// the same functions, so both see the same floats.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/expected.hpp"
#include "tensor/shape.hpp"

namespace leeway {

struct Preprocessing {
  enum class Kind : std::uint8_t {
    table,  // rows of named columns
    image,  // pixels
    text,   // characters
  };

  /// One column of a table.
  struct Column {
    std::string name;  // UTF-8
    /// The text values in the order of their codes; empty for a column of numbers. A value is
    /// encoded one-hot: 1 at its code, 0 elsewhere. Other values become zeros.
    std::vector<std::string> values;
    /// x = (number - mean) / deviation.
    double mean = 0;
    double deviation = 1;
    /// Replaces a missing number, in the unit of the file; a missing text becomes zeros. Without
    /// it, missing entries are refused.
    std::optional<double> fill;

    bool operator==(const Column&) const = default;
    bool is_text() const { return !values.empty(); }
    /// Floats that an entry becomes.
    std::int64_t width() const { return is_text() ? std::ssize(values) : 1; }
    /// (number - mean) / deviation, kept within the range of float.
    float scaled(double number) const;
    /// The position of `value`, or -1.
    std::int64_t code_of(std::string_view value) const;
    /// x: (width()). Zeros, and 1 at `code` unless it is -1.
    void put_code(std::int64_t code, float* x) const;
    /// Encodes one field of a file, without its quotes: width() floats. The error names the column.
    Status encode(std::string_view field, float* x) const;
  };

  /// How samples were set aside for tests: a test file, or a share drawn by the seed.
  struct Split {
    std::string test_file;
    double test_share = 0;  // 0 if there is a test file
    std::uint64_t seed = 0;
    bool operator==(const Split&) const = default;
  };

  /// A field of a row: column name and content.
  using Field = std::pair<std::string, std::string>;

  Kind kind = Kind::table;
  Shape shape;                       // of one sample
  Split split;                       // how samples were set aside for tests
  std::string label;                 // of a table: name of the column to predict
  std::vector<std::string> classes;  // names of the classes in the order of their codes, or empty
  double target_mean = 0;            // target in the unit of the file =
  double target_deviation = 1;       //   output * target_deviation + target_mean
  std::vector<Column> columns;       // of a table, in the order of the model's inputs
  char separator = ',';              // of a table: of the training file
  bool header = true;                // of a table: the training file names its columns
  double pixel_mean = 0;             // of an image: x = (pixel - mean) / deviation
  double pixel_deviation = 1;        //
  std::vector<std::string> characters;  // of a text, in the order of their codes

  bool operator==(const Preprocessing&) const = default;

  /// For each entry of `columns` its position in `names`, the header of a file. Further columns,
  /// such as the label, are ignored. Errors: a missing or repeated column.
  Expected<std::vector<std::size_t>> find_columns(std::span<const std::string> names) const;
  /// Encodes one row of that file. x: (shape). `positions` is from find_columns(). The error names
  /// the column and the value.
  Status encode_row(std::span<const std::string> fields, std::span<const std::size_t> positions,
                    float* x) const;
  /// Encodes one row given by its named fields, in any order.
  Expected<std::vector<float>> encode_row(std::span<const Field> fields) const;
  /// Encodes one image. Requires shape.count() pixels, and writes as many floats.
  void encode_pixels(std::span<const std::uint8_t> pixels, float* x) const;

  std::string to_json() const;
  /// Parses the result of to_json(). `name` is for errors. Checks sizes, names and numbers as if
  /// the writer were hostile.
  static Expected<Preprocessing> from_json(std::string_view json, const std::string& name);
};

/// True for an entry of a table that stands for a missing value: blank, `?`, and in any case NA,
/// N/A, NaN and null.
bool is_missing(std::string_view field);

/// pixel -> pixel * scale + shift.
struct PixelScaling {
  float scale = 1;
  float shift = 0;
};
PixelScaling pixel_scaling(double mean, double deviation);
/// Sets pixel_mean and pixel_deviation to those of the training pixels. Equal pixels keep 255 as
/// their deviation.
void measure_pixels(std::span<const std::uint8_t> pixels, Preprocessing& out);
/// x = scaled pixels. Reads and writes each cache line once.
void scale_pixels(std::span<const std::uint8_t> pixels, PixelScaling scaling, float* x);

}  // namespace leeway
