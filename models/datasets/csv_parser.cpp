#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "core/check.hpp"
#include "core/limits.hpp"
#include "core/memory.hpp"
#include "models/datasets/csv.hpp"
#include "models/datasets/csv_reader.hpp"
#include "models/datasets/file.hpp"
#include "models/datasets/preprocessing.hpp"
#include "models/datasets/text_codes.hpp"

namespace leeway {

namespace {

/// Bounds of the search for a similar column name.
constexpr std::size_t kMaxCandidates = 50;
constexpr std::size_t kMaxNameLength = 200;
/// The label of files without a header, unless a column's number is given.
constexpr std::string_view kLastColumn = "label";

std::string suggest_column(const std::string& word, const std::vector<std::string>& columns) {
  std::vector<std::string> candidates;
  for (const auto& column : columns)
    if (candidates.size() < kMaxCandidates && column.size() <= kMaxNameLength)
      candidates.push_back(column);
  return suggest(word, candidates);
}

bool has_decimal_comma(std::string_view field) {
  std::string number(trimmed(field));
  std::replace(number.begin(), number.end(), ',', '.');
  return number.find('.') != std::string::npos && parse_number(number).has_value();
}

/// Decodes one file: the header, then row by row.
class CsvParser {
 public:
  CsvParser(std::string_view text, const std::string& name, const CsvFormat& format)
      : text_(text), reader_(text, name, format.separator), name_(name), format_(format) {}

  Expected<CsvTable> parse() {
    if (text_.starts_with("\xff\xfe") || text_.starts_with("\xfe\xff"))
      return Error{concat(name_, ": is in UTF-16; convert it, for example with ",
                          "iconv -f UTF-16 -t UTF-8")};
    if (reader_.at_end())
      return Error{concat(name_, ": the file is empty; give a header line and rows")};
    Status status = format_.header ? read_header() : number_columns();
    if (status && format_.header) status = check_header();
    if (status) status = find_label();
    if (status) status = format_.train ? match_columns() : assign_columns();
    if (status) status = choose_kinds();
    if (!status) return status.error();
    if (format_.header && reader_.advance() != CsvReader::Next::row)
      return Error{concat(name_,
                          ": found a header line and no rows; add rows, or give "
                          "--no-header (data.csv.header) if the line is a row")};
    status = reserve();
    bool more = true;
    while (status && more) status = read_row(more);
    if (status && !format_.train) status = finish_texts();
    if (!status) return status.error();
    return std::move(table_);
  }

 private:
  static constexpr std::size_t kLabel = static_cast<std::size_t>(-1);

  /// A column of the file. Its kind is that of its first value.
  struct Column {
    enum class Kind : std::uint8_t { unknown, number, text };
    std::size_t slot = 0;  // its feature, or kLabel
    Kind kind = Kind::unknown;
    bool named_text = false;  // by the plan
    TextCodes codes;
    CsvReader::Place first_text;
  };
  using Kind = Column::Kind;

  Status read_header() {
    for (;;) {
      places_.push_back(reader_.place());
      if (Status status = reader_.read_text(columns_.emplace_back()); !status) return status;
      if (reader_.next() != CsvReader::Next::field) return {};
      reader_.advance();
    }
  }

  /// Counts the fields of the first row, and leaves the reader there.
  Status number_columns() {
    const CsvReader begin = reader_;
    if (Status status = read_header(); !status) return status;
    for (std::size_t i = 0; i < columns_.size(); ++i) columns_[i] = std::to_string(i + 1);
    reader_.rewind_to(begin);
    return {};
  }

  static constexpr std::string_view kHeaderless =
      "; if the file has no header line, give --no-header (data.csv.header = false)";

  std::string_view header_hint() const {
    const bool has_number = std::any_of(columns_.begin(), columns_.end(), [](const auto& column) {
      return parse_number(column).has_value();
    });
    return has_number && format_.header ? kHeaderless : "";
  }

  Status check_header() const {
    std::unordered_map<std::string_view, std::size_t> seen;
    bool all_numbers = true;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].empty())
        return reader_.error_at(places_[i], "column ", i + 1,
                                " has no name; name it in the header line, or remove it",
                                header_hint());
      all_numbers = all_numbers && parse_number(columns_[i]).has_value();
    }
    if (all_numbers)
      return reader_.error_at(places_[0],
                              "found numbers where the header line names the columns; add a header "
                              "line",
                              kHeaderless);
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (!seen.emplace(columns_[i], i).second)
        return reader_.error_at(places_[i], "found a second column ", excerpt(columns_[i]),
                                "; rename one of them", header_hint());
    return {};
  }

  Status find_label() {
    table_.label = format_.label;
    if (format_.header) return {};
    if (format_.label == kLastColumn) table_.label = columns_.back();
    if (std::find(columns_.begin(), columns_.end(), table_.label) != columns_.end()) return {};
    return Error{concat(name_, ": the label ", excerpt(format_.label),
                        " is not a column of a file without a header; give --label 1 to ",
                        columns_.size(), " (data.csv.label), or label for the last")};
  }

  Error no_label() const {
    if (columns_.size() == 1) {
      const auto at = columns_[0].find_first_of(";\t|,");
      if (at != std::string::npos)
        return reader_.error_at(
            places_[0], "found ", excerpt(columns_[0]), " as the only column; give --separator ",
            columns_[0][at] == '\t' ? std::string("tab") : concat('"', columns_[0][at], '"'),
            " (data.csv.separator)");
    }
    return reader_.error_at(places_[0], "found no column ", excerpt(table_.label),
                            " for the label; give --label (data.csv.label)",
                            suggest_column(table_.label, columns_), header_hint());
  }

  /// For training data: features in the file's order.
  Status assign_columns() {
    for (const auto& column : columns_) {
      const bool label = column == table_.label;
      state_.emplace_back().slot = label ? kLabel : table_.features.size();
      if (!label) table_.features.push_back(column);
    }
    table_.values.resize(table_.features.size());
    if (table_.features.size() == columns_.size()) return no_label();
    if (!table_.features.empty()) return {};
    return reader_.error_at(places_[0], "found no column but the label ", excerpt(table_.label),
                            "; add columns to predict it from, or give --separator if they are "
                            "separated by another character than ",
                            excerpt({&format_.separator, 1}));
  }

  /// For test data: features in the order of the training data.
  Status match_columns() {
    table_.features = format_.train->features;
    table_.values = format_.train->values;
    table_.class_names = format_.train->class_names;
    std::unordered_map<std::string_view, std::size_t> slot_of{{table_.label, kLabel}};
    for (std::size_t i = 0; i < table_.features.size(); ++i) slot_of.emplace(table_.features[i], i);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const auto found = slot_of.find(columns_[i]);
      if (found == slot_of.end())
        return reader_.error_at(places_[i], "found column ", excerpt(columns_[i]),
                                ", which is not in the training data; remove or rename it",
                                suggest_column(columns_[i], table_.features));
      state_.emplace_back().slot = found->second;
      slot_of.erase(found);  // names are unique, so the entries left at the end are missing
    }
    if (slot_of.empty()) return {};
    if (slot_of.contains(table_.label)) return no_label();
    return reader_.error_at(places_[0], "found no column ", excerpt(slot_of.begin()->first),
                            ", which is in the training data; add it",
                            suggest_column(std::string(slot_of.begin()->first), columns_));
  }

  /// Of the columns that the plan names, and of test data.
  Status choose_kinds() {
    for (const auto& name : format_.text_columns) {
      const auto found = std::find(columns_.begin(), columns_.end(), name);
      if (found == columns_.end())
        return Error{concat(name_, ": found no column ", excerpt(name),
                            "; correct --text-columns (data.csv.text_columns)",
                            suggest_column(name, columns_))};
      Column& column = state_[static_cast<std::size_t>(found - columns_.begin())];
      column.kind = Kind::text;
      column.named_text = true;
    }
    for (std::size_t i = 0; i < state_.size(); ++i) {
      Column& column = state_[i];
      const bool label = column.slot == kLabel;
      if (label && format_.regression) {
        if (column.named_text)
          return Error{concat(name_, ": the label ", excerpt(columns_[i]),
                              " is a column of texts, which regression cannot predict; leave it "
                              "out of --text-columns, or data.csv.regression")};
        column.kind = Kind::number;
      }
      if (!format_.train || (label && format_.regression)) continue;
      const auto& texts = label ? table_.class_names : table_.values[column.slot];
      column.kind = texts.empty() ? Kind::number : Kind::text;
      column.codes = TextCodes(texts);
    }
    return {};
  }

  /// Checks that the table fits into memory beside the text.
  Status reserve() {
    const auto rows = static_cast<std::size_t>(std::count(text_.begin(), text_.end(), '\n')) + 1;
    // A field has a separator or a line end.
    const std::size_t values = std::min(rows * columns_.size(), text_.size() + 1);
    if (Status fits = check_memory(name_, "its table", values * sizeof(double), kTooLargeAdvice);
        !fits)
      return fits;
    table_.x.reserve(values);
    return {};
  }

  Status read_row(bool& more) {
    const std::size_t first = table_.x.size();
    table_.x.resize(first + table_.features.size());
    for (std::size_t i = 0; i < state_.size(); ++i) {
      const CsvReader::Place place = reader_.place();
      Column& column = state_[i];
      double value = 0;
      if (column.kind == Kind::text || !reader_.read_number(value)) {
        if (Status status = read_text_field(i, place, value); !status) return status;
      } else {
        column.kind = Kind::number;
      }
      if (column.slot != kLabel) {
        table_.x[first + column.slot] = value;
      } else if (Status status = take_label(column, value, place); !status) {
        return status;
      }
      const CsvReader::Place field_end = reader_.place();
      const CsvReader::Next next = reader_.advance();
      const bool last = i + 1 == state_.size();
      const auto* const counted = format_.header ? "header names" : "first row has";
      if (last && next == CsvReader::Next::field)
        return reader_.error_at(reader_.place(), "found more than the ", state_.size(),
                                " fields that the ", counted, "; remove the extra fields");
      if (!last && next != CsvReader::Next::field)
        return reader_.error_at(field_end, "found ", i + 1, i == 0 ? " field" : " fields",
                                ", but the ", counted, ' ', state_.size(),
                                "; complete the row, or remove it");
      more = next == CsvReader::Next::row;
    }
    return {};
  }

  /// Reads a field that is quoted or not a number.
  Status read_text_field(std::size_t index, const CsvReader::Place& place, double& value) {
    if (Status status = reader_.read_text(field_); !status) return status;
    if (field_.empty() && index == 0 && reader_.next() != CsvReader::Next::field)
      return reader_.error_at(place, "found an empty line between rows; remove it");
    Column& column = state_[index];
    if (is_missing(field_)) return take_missing(index, place, value);
    const Expected<double> number = parse_number(field_);
    if (column.kind == Kind::unknown) column.kind = is_number(field_) ? Kind::number : Kind::text;
    if (column.kind == Kind::text) return take_text(index, place, value);
    if (number) {
      value = *number;
      return {};
    }
    return reader_.error_at(place, "column ", excerpt(columns_[index]), ": ", number.error().text,
                            format_.train || (column.slot == kLabel && format_.regression)
                                ? ""
                                : "; for a column of texts give --text-columns");
  }

  Status take_missing(std::size_t index, const CsvReader::Place& place, double& value) const {
    value = std::numeric_limits<double>::quiet_NaN();
    const bool label = state_[index].slot == kLabel;
    if (format_.allow_missing && !label) return {};
    const std::string found =
        trimmed(field_).empty() ? std::string("an empty field") : excerpt(field_);
    return reader_.error_at(
        place, "column ", excerpt(columns_[index]), ": found ", found,
        label ? ", but a row needs its label; fill it in, or remove the row"
              : ", a missing value; fill it in, remove the row, or give --missing mean");
  }

  Status take_text(std::size_t index, const CsvReader::Place& place, double& value) {
    Column& column = state_[index];
    const std::string_view text = trimmed(field_);
    const bool label = column.slot == kLabel;
    if (format_.train) {
      value = static_cast<double>(column.codes.find(text));
      if (!label || value >= 0) return {};
      return reader_.error_at(place, "column ", excerpt(columns_[index]), ": found class ",
                              excerpt(text),
                              ", which the training data lacks; give test data of "
                              "the same classes",
                              suggest(std::string(text), column.codes.first(kMaxCandidates)));
    }
    if (column.codes.size() == 0) {
      column.first_text = place;
      if (format_.separator != ',' && !column.named_text && has_decimal_comma(text))
        return reader_.error_at(place, "column ", excerpt(columns_[index]), ": found ",
                                excerpt(text), "; write numbers with a decimal point");
    }
    value = static_cast<double>(column.codes.add(text));
    const std::size_t most = label ? limits::kMaxClasses : limits::kMaxCategories;
    if (column.codes.size() <= most) return {};
    return reader_.error_at(place, "column ", excerpt(columns_[index]), ": found more than ", most,
                            " different texts; remove the column, or replace it by numbers");
  }

  Status take_label(const Column& column, double value, const CsvReader::Place& place) {
    table_.labels.push_back(value);
    if (format_.regression || column.kind == Kind::text) return {};
    if (!(value >= 0) || value != std::floor(value) || value >= limits::kMaxClasses)
      return reader_.error_at(place, "column ", excerpt(table_.label), ": found ", value,
                              ", which is not a class; number the classes from 0, or "
                              "set data.csv.regression, or name the column in --text-columns");
    const int needed = static_cast<int>(value) + 1;
    if (format_.train && needed > format_.train->classes)
      return reader_.error_at(place, "column ", excerpt(table_.label), ": found class ", value,
                              ", but the training data has 0 to ", format_.train->classes - 1,
                              "; give test data of the same classes");
    table_.classes = std::max(table_.classes, needed);
    return {};
  }

  /// Sorts the texts of each column, and replaces their codes of first appearance.
  Status finish_texts() {
    for (std::size_t i = 0; i < state_.size(); ++i) {
      Column& column = state_[i];
      const bool label = column.slot == kLabel;
      if (column.kind == Kind::unknown || (column.kind == Kind::text && column.codes.size() == 0))
        return Error{concat(name_, ": column ", excerpt(columns_[i]),
                            " has no value in any row; remove it")};
      if (column.kind == Kind::number) continue;
      if (!column.named_text && column.codes.are_mostly_numbers())
        return reader_.error_at(column.first_text, "column ", excerpt(columns_[i]),
                                ": begins with a text, but most of its values are numbers; write "
                                "numbers, or name the column in --text-columns");
      auto sorted = column.codes.sorted();
      double* values = label ? table_.labels.data() : table_.x.data() + column.slot;
      const std::size_t step = label ? 1 : table_.features.size();
      for (std::size_t row = 0; row < table_.labels.size(); ++row, values += step)
        if (!std::isnan(*values)) *values = sorted.code_of[static_cast<std::size_t>(*values)];
      if (label) table_.classes = static_cast<int>(sorted.texts.size());
      (label ? table_.class_names : table_.values[column.slot]) = std::move(sorted.texts);
    }
    return {};
  }

  const std::string_view text_;
  CsvReader reader_;
  const std::string& name_;
  const CsvFormat& format_;
  CsvTable table_;
  std::vector<std::string> columns_;      // names
  std::vector<CsvReader::Place> places_;  // of the header's fields
  std::vector<Column> state_;
  std::string field_;
};

}  // namespace

Expected<CsvTable> parse_csv(std::string_view text, const std::string& name,
                             const CsvFormat& format) {
  return CsvParser(text, name, format).parse();
}

}  // namespace leeway
