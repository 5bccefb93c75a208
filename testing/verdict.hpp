#pragma once
// Verdict and Measured: results of checks, with an explanation for the report of a failed test.
//
// Both work in the assertions of Catch2 and of GoogleTest: they convert to bool where a condition
// is expected, and print their explanation.
#include <concepts>
#include <iosfwd>
#include <string>
#include <utility>

namespace leeway {

/// The result type of GoogleTest's predicates, recognised without its header.
template <class T>
concept GoogleTestResult = requires(T result, const std::string& text) {
  {result.failure_message()};
  {result << text};
};

/// Whether a property of a run holds, and why not.
class Verdict {
 public:
  Verdict(bool holds, std::string text = {}) : holds_(holds), text_(std::move(text)) {}

  explicit operator bool() const { return holds_; }
  /// What was found; for people.
  const std::string& text() const { return text_; }

  friend Verdict operator!(const Verdict& verdict) { return {!verdict.holds_, verdict.text_}; }
  friend std::ostream& operator<<(std::ostream& out, const Verdict& verdict);

  /// For EXPECT_TRUE, which then prints the explanation.
  template <GoogleTestResult Result>
  operator Result() const {
    Result result(holds_);
    result << text_;
    return result;
  }

 private:
  bool holds_;
  std::string text_;
};

/// The first verdict that does not hold; otherwise the second one. Computes both. A template, so
/// that a verdict and a bool combine to a bool.
template <std::same_as<Verdict> V>
V operator&&(const V& first, const V& second) {
  return first ? second : first;
}

/// A number that was measured in a run. Comparisons give a Verdict that does not hold if the run
/// has failed.
class Measured {
 public:
  /// `what` names the number. `failure`: why the run failed; empty if it did not.
  Measured(double value, std::string what, std::string failure = {})
      : value_(value), what_(std::move(what)), failure_(std::move(failure)) {}

  double value() const { return value_; }
  const std::string& what() const { return what_; }

  friend Verdict operator<(const Measured& a, double b) { return a.check(a.value_ < b, "<", b); }
  friend Verdict operator<=(const Measured& a, double b) { return a.check(a.value_ <= b, "<=", b); }
  friend Verdict operator>(const Measured& a, double b) { return a.check(a.value_ > b, ">", b); }
  friend Verdict operator>=(const Measured& a, double b) { return a.check(a.value_ >= b, ">=", b); }
  friend Verdict operator==(const Measured& a, double b) { return a.check(a.value_ == b, "==", b); }
  friend Verdict operator!=(const Measured& a, double b) { return a.check(a.value_ != b, "!=", b); }
  friend std::ostream& operator<<(std::ostream& out, const Measured& measured);

 private:
  Verdict check(bool holds, const char* relation, double bound) const;

  double value_;
  std::string what_;
  std::string failure_;
};

/// Shares of Measured: waited_for(run, worker(3)) > 20_percent.
constexpr double operator""_percent(unsigned long long percent) {
  return static_cast<double>(percent) / 100;
}
constexpr double operator""_percent(long double percent) {
  return static_cast<double>(percent / 100);
}

}  // namespace leeway
