#pragma once
// What a checker says to what it is told.
#include <functional>
#include <string>

#include "sim/checkers/checker.hpp"

namespace leeway::sim {

/// What was seen, of a violation that `deed` commits; empty if it commits none.
inline std::string seen(const std::function<void()>& deed) {
  try {
    deed();
  } catch (const Violation& violation) {
    return violation.seen();
  }
  return "";
}

}  // namespace leeway::sim
