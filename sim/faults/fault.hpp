#pragma once
// Fault: something that befalls a simulated run at some time, and may pass.
//
// To add one: an arm of plan::FaultKind, a class of its own here, a line in catalogue.cpp.
#include <functional>

#include "core/time.hpp"
#include "plan/plan.hpp"
#include "sim/chance.hpp"
#include "sim/simulator.hpp"

namespace leeway::sim {

/// Begins the next life of an actor.
using StartAgain = std::function<void(Simulator&, Address)>;

class Fault {
 public:
  virtual ~Fault() = default;
  virtual void begin(Simulator& host) = 0;
  /// How long it lasts; then end() is called. Nothing: it is over at once, or never.
  virtual Duration lasts() const { return {}; }
  virtual void end(Simulator&) {}
};

}  // namespace leeway::sim
