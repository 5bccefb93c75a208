#pragma once
// Checks of single values by the annotations `$range` and `$notEmpty`. Only plan/*.cpp includes it.
#include <capnp/dynamic.h>

#include <string>

#include "core/expected.hpp"

namespace leeway::plan {

/// Refuses the first value outside its annotation, and Float64s that are not finite. Looks into
/// lists of structs, not into other lists. The error names the place below `where`, the value and
/// the remedy: `model[3].conv2d.kernel: 0 is not allowed; give 1 to 1024`.
Status check_ranges(const capnp::DynamicStruct::Reader& in, const std::string& where = "");

/// The range of the field in words, as in "1 to 1024"; empty without an annotation.
std::string range_text(capnp::StructSchema::Field field);

}  // namespace leeway::plan
