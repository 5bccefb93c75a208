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

  /// `text` and `name`, which is for errors, are borrowed. A byte order mark is skipped.
  CsvReader(std::string_view text, const std::string& name, char separator = ',');

  /// Reads one field as text, without its quotes. A field that is not UTF-8 is read as Latin-1.
  /// Errors: an unterminated quote.
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

  /// Returns to the position of another reader of the same text.
  void rewind_to(const CsvReader& other) {
    at_ = other.at_;
    line_ = other.line_;
    line_number_ = other.line_number_;
  }

  Place place() const { return {line_, at_, line_number_}; }

  /// "FILE:LINE:COLUMN: values...", columns counted in characters from 1.
  template <class... Values>
  Error error_at(const Place& place, const Values&... values) const {
    return Error{concat(name_, ":", place.number, ":", column(place), ": ", values...)};
  }

 private:
  Status read_quoted(const Place& open, std::string& out);
  bool is_blank(char c) const { return c == ' ' || (c == '\t' && separator_ != '\t'); }
  const char* skip_blanks(const char* at) const;
  bool ends_field(const char* at) const;
  bool is_line_end(const char* at) const;
  static std::int64_t column(const Place& place);

  const std::string& name_;
  const char* at_;
  const char* end_;
  const char* line_;
  std::int64_t line_number_ = 1;
  char separator_;
};

/// True for a number, with optional blanks around it, also for one beyond the range of float.
bool is_number(std::string_view text);

/// Parses `text` as a number, with optional blanks around it. Errors do not name a place.
Expected<double> parse_number(std::string_view text);

}  // namespace leeway
