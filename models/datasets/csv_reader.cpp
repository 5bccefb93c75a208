#include "models/datasets/csv_reader.hpp"

#include <charconv>
#include <cmath>
#include <limits>

#include "core/check.hpp"
#include "models/datasets/file.hpp"
#include "models/datasets/utf8.hpp"

namespace leeway {

namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr double kMaxFloat = std::numeric_limits<float>::max();

/// std::from_chars, extended by a leading plus.
std::from_chars_result read_double(const char* begin, const char* end, double& out) {
  if (end - begin > 1 && *begin == '+' && begin[1] != '-') ++begin;
  return std::from_chars(begin, end, out);
}

}  // namespace

CsvReader::CsvReader(std::string_view text, const std::string& name, char separator)
    : name_(name), separator_(separator) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  at_ = line_ = text.data();
  end_ = at_ + text.size();
}

const char* CsvReader::skip_blanks(const char* at) const {
  while (at < end_ && is_blank(*at)) ++at;
  return at;
}

bool CsvReader::is_line_end(const char* at) const {
  if (at < end_ && *at == '\r') return at + 1 == end_ || at[1] == '\n';
  return at < end_ && *at == '\n';
}

bool CsvReader::ends_field(const char* at) const {
  return at == end_ || *at == separator_ || is_line_end(at);
}

bool CsvReader::read_number(double& out) {
  double value = 0;
  const auto result = read_double(skip_blanks(at_), end_, value);
  if (result.ec != std::errc{} || !(std::abs(value) <= kMaxFloat)) return false;
  const char* const field_end = skip_blanks(result.ptr);
  if (!ends_field(field_end)) return false;
  at_ = field_end;
  out = value;
  return true;
}

Status CsvReader::read_text(std::string& out) {
  out.clear();
  const char* const begin = skip_blanks(at_);
  if (begin < end_ && *begin == '"') {
    const Place open{line_, begin, line_number_};
    at_ = begin + 1;
    const Status status = read_quoted(open, out);
    make_utf8(out);
    return status;
  }
  const char* stop = at_;
  while (!ends_field(stop)) ++stop;
  out.assign(at_, stop);
  make_utf8(out);
  at_ = stop;
  return {};
}

Status CsvReader::read_quoted(const Place& open, std::string& out) {
  for (; at_ < end_; ++at_) {
    if (*at_ == '"') {
      if (at_ + 1 == end_ || at_[1] != '"') break;
      ++at_;
    } else if (*at_ == '\n') {
      line_ = at_ + 1;
      ++line_number_;
    }
    out += *at_;
  }
  if (at_ == end_)
    return error_at(open, "found a quote that is never closed; close it, or remove it");
  ++at_;
  at_ = skip_blanks(at_);
  if (ends_field(at_)) return {};
  return error_at(place(), "found ", excerpt({at_, 1}),
                  " after a closing quote; double each quote inside of quotes");
}

CsvReader::Next CsvReader::next() const {
  LW_CHECK(ends_field(at_));
  if (at_ < end_ && *at_ == separator_) return Next::field;
  return at_end() ? Next::end : Next::row;
}

CsvReader::Next CsvReader::advance() {
  const Next following = next();
  if (following == Next::end) return following;
  if (*at_ == '\r') ++at_;
  ++at_;
  if (following == Next::row) {
    line_ = at_;
    ++line_number_;
  }
  return following;
}

bool CsvReader::at_end() const {
  const char* at = at_;
  while (at < end_ && (*at == '\n' || *at == '\r')) ++at;
  return at == end_;
}

std::int64_t CsvReader::column(const Place& place) {
  std::int64_t column = 1;
  for (const char* at = place.line; at < place.at; ++at) {
    const bool continues_character = (static_cast<unsigned char>(*at) & 0xc0) == 0x80;  // UTF-8
    if (!continues_character) ++column;
  }
  return column;
}

bool is_number(std::string_view text) {
  text = trimmed(text);
  double value = 0;
  const auto result = read_double(text.data(), text.data() + text.size(), value);
  return result.ec != std::errc::invalid_argument && result.ptr == text.data() + text.size();
}

Expected<double> parse_number(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  if (text.empty()) return Error{"found an empty field; fill in a number, or remove the row"};
  double value = 0;
  const auto result = read_double(text.data(), text.data() + text.size(), value);
  if (result.ec == std::errc::invalid_argument || result.ptr != text.data() + text.size())
    return Error{concat("found ", excerpt(text),
                        ", which is not a number; write a number, or "
                        "remove the column")};
  if (std::isnan(value))
    return Error{concat("found ", excerpt(text), "; fill in a number, or remove the row")};
  if (result.ec != std::errc{} || std::abs(value) > kMaxFloat)
    return Error{concat("found ", excerpt(text),
                        ", which is beyond the range of a float (3.4e38); "
                        "rescale the column, or remove the row")};
  return value;
}

}  // namespace leeway
