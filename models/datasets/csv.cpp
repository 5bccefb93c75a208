#include "models/datasets/csv.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <unordered_map>

#include "core/check.hpp"
#include "core/rng.hpp"
#include "models/datasets/csv_reader.hpp"
#include "models/datasets/file.hpp"
#include "models/datasets/streams.hpp"
#include "models/datasets/table.hpp"

namespace leeway {

namespace {

/// A larger label is more likely a mistake than a class index.
constexpr int kMaxClasses = 1 << 20;
/// Bounds of the search for a similar column name.
constexpr std::size_t kMaxCandidates = 50;
constexpr std::size_t kMaxNameLength = 200;

std::string suggest_column(const std::string& word, const std::vector<std::string>& columns) {
  std::vector<std::string> candidates;
  for (const auto& column : columns)
    if (candidates.size() < kMaxCandidates && column.size() <= kMaxNameLength)
      candidates.push_back(column);
  return suggest(word, candidates);
}

/// Decodes one file: the header, then row by row.
class CsvParser {
 public:
  CsvParser(std::string_view text, const std::string& name, const CsvFormat& format)
      : reader_(text, name), name_(name), format_(format) {}

  Expected<CsvTable> parse() {
    if (reader_.at_end())
      return Error{concat(name_, ": the file is empty; give a header line and rows of numbers")};
    Status status = read_header();
    if (status) status = check_header();
    if (status) status = format_.train ? match_columns() : assign_columns();
    if (!status) return status.error();
    if (reader_.advance() != CsvReader::Next::row)
      return Error{concat(name_, ": found a header line and no rows; add rows of numbers")};
    bool more = true;
    while (more) {
      if (status = read_row(more); !status) return status.error();
    }
    return std::move(table_);
  }

 private:
  static constexpr std::size_t kLabel = static_cast<std::size_t>(-1);

  Status read_header() {
    for (;;) {
      places_.push_back(reader_.place());
      if (Status status = reader_.read_text(columns_.emplace_back()); !status) return status;
      if (reader_.next() != CsvReader::Next::field) return {};
      reader_.advance();
    }
  }

  Status check_header() const {
    std::unordered_map<std::string_view, std::size_t> seen;
    bool all_numbers = true;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].empty())
        return reader_.error_at(places_[i], "column ", i + 1,
                                " has no name; name it in the header line, or remove it");
      if (!seen.emplace(columns_[i], i).second)
        return reader_.error_at(places_[i], "found a second column ", excerpt(columns_[i]),
                                "; rename one of them");
      all_numbers = all_numbers && parse_number(columns_[i]).has_value();
    }
    if (!all_numbers) return {};
    return reader_.error_at(
        places_[0], "found numbers where the header line names the columns; add a header line");
  }

  Error no_label() const {
    if (columns_.size() == 1 && columns_[0].find_first_of(";\t") != std::string::npos)
      return reader_.error_at(places_[0], "found ", excerpt(columns_[0]),
                              " as the only column; separate columns with commas");
    return reader_.error_at(places_[0], "found no column ", excerpt(format_.label),
                            " for the label; set data.csv.label",
                            suggest_column(format_.label, columns_));
  }

  /// For training data: features in the file's order.
  Status assign_columns() {
    for (const auto& column : columns_) {
      const bool label = column == format_.label;
      slots_.push_back(label ? kLabel : table_.features.size());
      if (!label) table_.features.push_back(column);
    }
    if (table_.features.size() == columns_.size()) return no_label();
    if (!table_.features.empty()) return {};
    return reader_.error_at(places_[0], "found no column but the label ", excerpt(format_.label),
                            "; add columns to predict it from");
  }

  /// For test data: features in the order of the training data.
  Status match_columns() {
    table_.features = format_.train->features;
    std::unordered_map<std::string_view, std::size_t> slot_of{{format_.label, kLabel}};
    for (std::size_t i = 0; i < table_.features.size(); ++i) slot_of.emplace(table_.features[i], i);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const auto found = slot_of.find(columns_[i]);
      if (found == slot_of.end())
        return reader_.error_at(places_[i], "found column ", excerpt(columns_[i]),
                                ", which is not in the training data; remove or rename it",
                                suggest_column(columns_[i], table_.features));
      slots_.push_back(found->second);
      slot_of.erase(found);  // names are unique, so the entries left at the end are missing
    }
    if (slot_of.empty()) return {};
    if (slot_of.contains(format_.label)) return no_label();
    return reader_.error_at(places_[0], "found no column ", excerpt(slot_of.begin()->first),
                            ", which is in the training data; add it",
                            suggest_column(std::string(slot_of.begin()->first), columns_));
  }

  Status read_row(bool& more) {
    const std::size_t first = table_.x.size();
    table_.x.resize(first + table_.features.size());
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const CsvReader::Place place = reader_.place();
      double value = 0;
      if (!reader_.read_number(value)) {
        if (Status status = read_text_field(i, place, value); !status) return status;
      }
      if (slots_[i] != kLabel) {
        table_.x[first + slots_[i]] = value;
      } else if (Status status = take_label(value, place); !status) {
        return status;
      }
      const CsvReader::Place field_end = reader_.place();
      const CsvReader::Next next = reader_.advance();
      const bool last = i + 1 == slots_.size();
      if (last && next == CsvReader::Next::field)
        return reader_.error_at(reader_.place(), "found more than the ", slots_.size(),
                                " fields that the header names; remove the extra fields");
      if (!last && next != CsvReader::Next::field)
        return reader_.error_at(field_end, "found ", i + 1, i == 0 ? " field" : " fields",
                                ", but the header names ", slots_.size(),
                                "; complete the row, or remove it");
      more = next == CsvReader::Next::row;
    }
    return {};
  }

  /// Reads a field that is quoted or not a number.
  Status read_text_field(std::size_t column, const CsvReader::Place& place, double& value) {
    if (Status status = reader_.read_text(field_); !status) return status;
    const Expected<double> number = parse_number(field_);
    if (number) {
      value = *number;
      return {};
    }
    if (field_.empty() && column == 0 && reader_.next() != CsvReader::Next::field)
      return reader_.error_at(place, "found an empty line between rows; remove it");
    return reader_.error_at(place, "column ", excerpt(columns_[column]), ": ", number.error().text);
  }

  Status take_label(double value, const CsvReader::Place& place) {
    table_.labels.push_back(value);
    if (format_.regression) return {};
    if (!(value >= 0) || value != std::floor(value) || value >= kMaxClasses)
      return reader_.error_at(place, "column ", excerpt(format_.label), ": found ", value,
                              ", which is not a class; number the classes from 0, or "
                              "set data.csv.regression");
    const int needed = static_cast<int>(value) + 1;
    if (format_.train && needed > format_.train->classes)
      return reader_.error_at(place, "column ", excerpt(format_.label), ": found class ", value,
                              ", but the training data has 0 to ", format_.train->classes - 1,
                              "; give test data of the same classes");
    table_.classes = std::max(table_.classes, needed);
    return {};
  }

  CsvReader reader_;
  const std::string& name_;
  const CsvFormat& format_;
  CsvTable table_;
  std::vector<std::string> columns_;
  std::vector<CsvReader::Place> places_;  // of the header's fields
  std::vector<std::size_t> slots_;        // per column: its feature, or kLabel
  std::string field_;
};

/// x -> (x - mean) * scale, per feature.
struct FeatureScaling {
  std::vector<double> mean, scale;
};

/// Normalises `rows` to mean 0 and variance 1. A column that is constant in these rows keeps its
/// scale.
FeatureScaling feature_scaling(const CsvTable& table, std::span<const std::size_t> rows) {
  const std::size_t features = table.features.size();
  const auto count = static_cast<double>(rows.size());
  // Sums relative to a row are exact for constant columns.
  const double* const origin = table.x.data() + rows[0] * features;
  FeatureScaling scaling{std::vector<double>(features, 0), std::vector<double>(features, 0)};
  for (const std::size_t row : rows)
    for (std::size_t f = 0; f < features; ++f)
      scaling.mean[f] += (table.x[row * features + f] - origin[f]) / count;
  for (std::size_t f = 0; f < features; ++f) scaling.mean[f] += origin[f];
  for (const std::size_t row : rows) {
    for (std::size_t f = 0; f < features; ++f) {
      const double difference = table.x[row * features + f] - scaling.mean[f];
      scaling.scale[f] += difference * difference / count;
    }
  }
  for (double& scale : scaling.scale) scale = scale > 0 ? 1 / std::sqrt(scale) : 1;
  return scaling;
}

std::shared_ptr<const Dataset> make_table(const CsvTable& table, std::span<const std::size_t> rows,
                                          int classes,
                                          const std::optional<FeatureScaling>& scaling) {
  constexpr double kLimit = std::numeric_limits<float>::max();
  const std::size_t features = table.features.size();
  Table::Content content;
  content.features = static_cast<std::int64_t>(features);
  content.classes = classes;
  content.x.reserve(rows.size() * features);
  for (const std::size_t row : rows) {
    for (std::size_t f = 0; f < features; ++f) {
      double value = table.x[row * features + f];
      if (scaling)
        value = std::clamp((value - scaling->mean[f]) * scaling->scale[f], -kLimit, kLimit);
      content.x.push_back(static_cast<float>(value));
    }
    if (classes > 0) {
      content.labels.push_back(static_cast<std::int32_t>(table.labels[row]));
    } else {
      content.targets.push_back(static_cast<float>(table.labels[row]));
    }
  }
  return std::make_shared<Table>(std::move(content));
}

std::vector<std::size_t> all_rows(std::size_t count) {
  std::vector<std::size_t> rows(count);
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  return rows;
}

TrainTest make_sets(const CsvTable& train, std::span<const std::size_t> train_rows,
                    const CsvTable& test, std::span<const std::size_t> test_rows, bool normalize) {
  std::optional<FeatureScaling> scaling;
  if (normalize) scaling = feature_scaling(train, train_rows);
  return {make_table(train, train_rows, train.classes, scaling),
          make_table(test, test_rows, train.classes, scaling)};
}

/// Moves round(share * rows) seeded rows to the test set. Both sets keep the file's order.
Expected<TrainTest> split(const CsvTable& table, const plan::Csv& source, std::uint64_t seed) {
  const std::size_t rows = table.labels.size();
  if (!(source.test_share > 0 && source.test_share < 1))
    return Error{concat("data.csv.test_share: ", source.test_share,
                        " is not allowed; give a share between 0 and 1, or a file data.csv.test")};
  const auto test_rows =
      static_cast<std::size_t>(std::llround(source.test_share * static_cast<double>(rows)));
  if (test_rows == 0 || test_rows == rows)
    return Error{concat("data.csv.test_share: ", source.test_share, " of ", rows, " rows leaves ",
                        test_rows == 0 ? "no test rows" : "no training rows",
                        "; change the share, or give a file data.csv.test")};
  auto order = all_rows(rows);
  Rng::stream(seed, streams::kTestShare).shuffle(std::span(order));
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(test_rows);
  std::sort(order.begin(), middle);
  std::sort(middle, order.end());
  const auto all = std::span<const std::size_t>(order);
  return make_sets(table, all.subspan(test_rows), table, all.first(test_rows), source.normalize);
}

Expected<CsvTable> read_csv(const std::string& path, const char* key, const CsvFormat& format) {
  const auto bytes = read_file(path, concat("give ", key, " an existing file"));
  if (!bytes) return bytes.error();
  return parse_csv({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, path, format);
}

}  // namespace

Expected<CsvTable> parse_csv(std::string_view text, const std::string& name,
                             const CsvFormat& format) {
  return CsvParser(text, name, format).parse();
}

Expected<TrainTest> load_csv(const plan::Csv& source, std::uint64_t seed) {
  const CsvFormat format{source.label, source.regression, nullptr};
  const auto train = read_csv(source.train, "data.csv.train", format);
  if (!train) return train.error();
  if (source.test.empty()) return split(*train, source, seed);
  const auto test =
      read_csv(source.test, "data.csv.test", {source.label, source.regression, &*train});
  if (!test) return test.error();
  return make_sets(*train, all_rows(train->labels.size()), *test, all_rows(test->labels.size()),
                   source.normalize);
}

}  // namespace leeway
