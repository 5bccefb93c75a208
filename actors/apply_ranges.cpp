#include "actors/apply_ranges.hpp"

namespace leeway {

void apply_ranges(Executor& on, const Optimizer& optimizer, const Model& model,
                  const std::vector<UpdateRange>& ranges, const kernels::UpdateBuffers& buffers,
                  const UpdateSize& size) {
  for (const UpdateRange& range : ranges) {
    UpdateSize own = size;
    own.learning_rate *= range.factors.rate;
    own.largest_rate *= range.factors.rate;
    own.decay = range.factors.decay;
    own.parameter = model.parameters()[static_cast<std::size_t>(range.parameter)].name;
    own.first = range.first;
    own.floats = range.floats;
    own.columns = range.columns;
    optimizer.update(on, buffers.range(range.begin, range.end), own);
  }
}

}  // namespace leeway
