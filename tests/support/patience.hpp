#pragma once
// The time limit of tests that wait for another thread or process: enough for a machine under full
// load. A test that passes does not use it up.
#include <chrono>
#include <thread>

namespace leeway::test {

inline constexpr std::chrono::seconds kPatience(120);

template <class Condition>
bool comes_true(Condition condition) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return condition();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace leeway::test
