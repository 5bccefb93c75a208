#pragma once
// The text of plan.precision.
#include <string>
#include <vector>

#include "core/expected.hpp"
#include "tensor/precision.hpp"

namespace leeway {

/// "bf16", or "bf16,0=fp32,3-5=tf32" with other precisions of some layers of the list: one
/// precision per layer. The error lists the precisions.
Expected<std::vector<Precision>> parse_precision(const std::string& text, std::size_t layers);

}  // namespace leeway
