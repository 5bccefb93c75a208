#pragma once
// The observation of a violation, for tests of checkers.
#include <functional>
#include <string>

#include "sim/checkers/checker.hpp"

namespace leeway::sim {

/// The observation of the violation that `action` causes; empty without a violation.
inline std::string seen(const std::function<void()>& action) {
  try {
    action();
  } catch (const Violation& violation) {
    return violation.seen();
  }
  return "";
}

}  // namespace leeway::sim
