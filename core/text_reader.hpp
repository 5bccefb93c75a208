#pragma once
// TextReader: parses the value of a flag from left to right and keeps the first error.
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/text.hpp"

namespace leeway {

class TextReader {
 public:
  explicit TextReader(std::string_view text) : text_(text) {}

  bool skip(std::string_view word) {
    if (!rest().starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void expect(std::string_view sign) {
    if (!skip(sign)) missing(concat('\'', sign, '\''));
  }
  template <class Number>
  Number number(const char* name) {
    Number value{};
    const char* end = text_.data() + text_.size();
    const auto [stopped, error] = std::from_chars(text_.data() + at_, end, value);
    bool fits = error == std::errc();
    if constexpr (std::is_floating_point_v<Number>) fits = fits && std::isfinite(value);
    if (error == std::errc::result_out_of_range && problem_.empty())
      problem_ = concat("has a ", name, " that is too large after \"", so_far(), '"');
    else if (!fits)
      missing(name);
    else
      at_ = static_cast<std::size_t>(stopped - text_.data());
    return value;
  }
  /// `4x`.
  double factor() {
    const auto value = number<double>("factor");
    expect("x");
    return value;
  }
  std::uint32_t iterations() { return number<std::uint32_t>("number of iterations"); }
  /// Reads `200ms`, `50us` or `2s`, in seconds. Consumes nothing if the unit is missing.
  bool skip_time(double& seconds) {
    TextReader ahead = *this;
    const auto value = ahead.number<double>("time");
    if (!ahead.problem().empty()) return false;
    if (ahead.skip("us"))
      seconds = value / 1e6;
    else if (ahead.skip("ms"))
      seconds = value / 1e3;
    else if (ahead.skip("s"))
      seconds = value;
    else
      return false;
    at_ = ahead.at_;
    return true;
  }
  /// Like skip_time, but a missing time is an error.
  double time() {
    double seconds = 0;
    if (!skip_time(seconds)) missing("time, such as 200ms or 2s,");
    return seconds;
  }
  /// Reads lower-case letters, and hyphens after the first letter.
  std::string word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           ((text_[at_] >= 'a' && text_[at_] <= 'z') || (at_ > begin && text_[at_] == '-')))
      ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }
  /// Reads everything up to the last `end`.
  std::string up_to_last(char end) {
    const std::size_t length = rest().rfind(end);
    if (length == 0 || length == std::string_view::npos) {
      missing("file name");
      return {};
    }
    std::string found(rest().substr(0, length));
    at_ += length;
    return found;
  }
  void expect_end() {
    if (problem_.empty() && !rest().empty())
      problem_ = concat("has unexpected text after \"", so_far(), '"');
  }
  void missing(const std::string& name) {
    if (!problem_.empty()) return;
    problem_ = at_ == 0 ? concat("does not begin with a ", name)
                        : concat("is missing the ", name, " after \"", so_far(), '"');
  }

  std::string_view rest() const { return text_.substr(at_); }
  /// The first error, or "".
  const std::string& problem() const { return problem_; }

 private:
  std::string_view so_far() const { return text_.substr(0, at_); }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string problem_;
};

}  // namespace leeway
