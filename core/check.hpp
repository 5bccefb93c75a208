#pragma once
// LW_CHECK: assertions that stay on in release builds. A failure is a bug, never bad input.
#include <sstream>
#include <stdexcept>
#include <string>

namespace leeway {

/// Thrown by LW_CHECK. Only `main` and the host that runs a role catch it.
class CheckFailed : public std::logic_error {
  using std::logic_error::logic_error;
};

namespace detail {
template <class... Values>
[[noreturn, gnu::cold, gnu::noinline]] void check_failed(const char* file, int line,
                                                         const char* condition,
                                                         const Values&... values) {
  std::ostringstream text;
  text << file << ':' << line << ": check failed: " << condition;
  [[maybe_unused]] const char* separator = " with ";
  ((text << separator << values, separator = ", "), ...);
  throw CheckFailed(text.str());
}
}  // namespace detail

}  // namespace leeway

/// LW_CHECK(condition, values...) throws CheckFailed with file, line, condition and values if
/// `condition` is false.
#define LW_CHECK(condition, ...)                                                                 \
  do {                                                                                           \
    if (!(condition)) [[unlikely]]                                                               \
      ::leeway::detail::check_failed(__FILE__, __LINE__, #condition __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)
