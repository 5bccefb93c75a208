#pragma once
// CsvReader: reads the fields of a CSV text and tracks line and column.
#include <cstdint>
#include <string>
#include <string_view>

#include "core/expected.hpp"
#include "core/text.hpp"

namespace leeway {

class CsvReader {
 public:
  /// The separator after a field.
  enum class Next : std::uint8_t { field, row, end };

  /// A place in the text, for errors.
  struct Place {
    const char* line = nullptr;  // where its line begins
    const char* at = nullptr;
    std::int64_t number = 1;  // of its line, from 1
  };

  /// `text` is borrowed; `name` is for errors. A byte order mark is skipped.
  CsvReader(std::string_view text, const std::string& name);

  /// Reads one field as text, without its quotes. Errors: an unterminated quote.
  Status read_text(std::string& out);

  /// Reads one field if it is an unquoted finite number within the range of float; otherwise
  /// changes nothing and returns false.
  bool read_number(double& out);

  /// The separator after the latest field. Trailing line ends count as the end.
  Next next() const;

  /// Skips the separator after a field and returns the previous next().
  Next advance();

  /// True if only line ends are left.
  bool at_end() const;

  Place place() const { return {line_, at_, line_number_}; }

  /// "FILE:LINE:COLUMN: values...", columns counted in characters from 1.
  template <class... Values>
  Error error_at(const Place& place, const Values&... values) const {
    return Error{concat(name_, ":", place.number, ":", column(place), ": ", values...)};
  }

 private:
  Status read_quoted(const Place& open, std::string& out);
  const char* skip_blanks(const char* at) const;
  bool ends_field(const char* at) const;
  bool is_line_end(const char* at) const;
  static std::int64_t column(const Place& place);

  const std::string& name_;
  const char* at_;
  const char* end_;
  const char* line_;
  std::int64_t line_number_ = 1;
};

/// Parses `text` as a number, with optional blanks around it. Errors do not name a place.
Expected<double> parse_number(std::string_view text);

}  // namespace leeway
