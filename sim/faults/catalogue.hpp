#pragma once
// The catalogue of all faults.
#include <memory>

#include "sim/faults/fault.hpp"

namespace leeway::sim {

/// Null for faults that the worker injects itself: `throws` and `killed`.
std::unique_ptr<Fault> make_fault(const plan::Fault& spec, const StartAgain& again);

}  // namespace leeway::sim
