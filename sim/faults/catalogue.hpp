#pragma once
// All faults: what a plan names, as something that happens.
#include <memory>

#include "sim/faults/fault.hpp"

namespace leeway::sim {

/// Null for what the worker itself sees to: to throw, or be killed, in the middle of an iteration.
std::unique_ptr<Fault> make_fault(const plan::Fault& spec, const StartAgain& again);

}  // namespace leeway::sim
