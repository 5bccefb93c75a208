#pragma once
// CsvReader: walks through the fields of a CSV text and knows where it stands.
#include <cstdint>
#include <string>
#include <string_view>

#include "core/expected.hpp"
#include "core/text.hpp"

namespace leeway {

class CsvReader {
 public:
  /// What follows the field that was read last.
  enum class Next : std::uint8_t { field, row, end };

  /// A place in the text, for errors.
  struct Place {
    const char* line = nullptr;  // where its line begins
    const char* at = nullptr;
    std::int64_t number = 1;  // of its line, from 1
  };

  /// `text` is borrowed; `name` is for errors. A byte order mark is skipped.
  CsvReader(std::string_view text, const std::string& name);

  /// Reads one field as text: unquoted, doubled quotes undone. Errors: quotes that do not close.
  Status read_text(std::string& out);

  /// Reads one field if it is plainly a finite number within the range of float; else changes
  /// nothing and returns false.
  bool read_number(double& out);

  /// What follows the field just read. Line ends at the end of the text, however many, are the end.
  Next next() const;

  /// Steps over the separator behind a field and returns what next() was.
  Next advance();

  /// True when nothing but line ends is left.
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

/// The number that `text` holds, blanks around it allowed, or why it is none (without a place).
Expected<double> parse_number(std::string_view text);

}  // namespace leeway
