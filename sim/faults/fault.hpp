#pragma once
// Fault: a disturbance of a simulated run that begins at some time and may end.
//
// To add one, add an arm of plan::FaultKind, a class in this folder and a line in catalogue.cpp.
#include <functional>

#include "core/time.hpp"
#include "plan/plan.hpp"
#include "sim/chance.hpp"
#include "sim/simulator.hpp"

namespace leeway::sim {

/// Restarts an actor, or starts one that was absent.
using StartAgain = std::function<void(Simulator&, Address)>;

class Fault {
 public:
  virtual ~Fault() = default;
  virtual void begin(Simulator& host) = 0;
  /// The time until end() is called; 0 if it is not called.
  virtual Duration lasts() const { return {}; }
  virtual void end(Simulator&) {}
};

}  // namespace leeway::sim
