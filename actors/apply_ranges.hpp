#pragma once
// apply_ranges: an update of a block whose parameters have their own learning rates and decays.
#include <vector>

#include "actors/update_ranges.hpp"
#include "policies/optimizer/optimizer.hpp"

namespace leeway {

/// Updates each range of a block. `size`: of the update, before the factors of the ranges.
void apply_ranges(Executor& on, const Optimizer& optimizer, const Model& model,
                  const std::vector<UpdateRange>& ranges, const kernels::UpdateBuffers& buffers,
                  const UpdateSize& size);

}  // namespace leeway
