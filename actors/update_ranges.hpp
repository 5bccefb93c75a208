#pragma once
// UpdateRange: floats of a block with one learning rate and weight decay.
#include <cstdint>
#include <vector>

#include "core/expected.hpp"
#include "models/layout.hpp"
#include "models/model.hpp"
#include "policies/optimizer/parameter_groups.hpp"

namespace leeway {

/// Floats [begin, end) of a block.
struct UpdateRange {
  std::int64_t begin = 0, end = 0;
  ParameterFactors factors;
  // Of an optimizer that updates parameters separately:
  int parameter = -1;
  std::int64_t first = 0;    // floats of the parameter before them
  std::int64_t floats = 0;   // without padding
  std::int64_t columns = 0;  // of a weight matrix; 0: no matrix, or a table of tokens or positions
};

/// By block: ranges that cover it, padding included; one if its parameters have equal factors, or
/// one for each parameter if the optimizer updates them separately. An error names a pattern that
/// no parameter matches.
Expected<std::vector<std::vector<UpdateRange>>> make_update_ranges(const plan::Optimizer& optimizer,
                                                                   const Model& model,
                                                                   const Layout& layout);

}  // namespace leeway
