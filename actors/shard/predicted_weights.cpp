#include "actors/shard/predicted_weights.hpp"

#include <vector>

#include "core/check.hpp"

namespace leeway {

Blob predicted_weights(const Job& job, const BlockState& state, std::int64_t lag) {
  const Block& block = *state.block;
  if (lag == 0 || job.cost_only || block.frozen || block.average > 0) return state.weights;
  const auto on = job.executor(state.weights.device());
  const auto bytes = state.weights.size();
  kernels::UpdateBuffers buffers;
  buffers.count = block.floats;
  Blob predicted = on->allocate(bytes);
  on->begin_read(state.weights);
  buffers.w = buffers.g = state.weights.as_floats();  // the formulas take no gradient
  buffers.w_out = predicted.mutable_floats();
  std::vector<Blob> slots, written;  // the formulas leave the state, and write it
  for (int slot = 0; slot < job.optimizer->slots(); ++slot) {
    slots.push_back(slot_floats(job, state, slot));
    on->begin_read(slots.back());
    written.push_back(on->allocate(bytes));
    buffers.state[slot] = slots.back().as_floats();
    buffers.state_out[slot] = written.back().mutable_floats();
  }
  const double rate = job.learning_rate(static_cast<double>(state.samples));
  for (const UpdateRange& range : job.update_ranges[block.id.value()]) {
    const UpdateSize size{.learning_rate = rate * range.factors.rate, .progress = state.progress};
    const auto formula = job.optimizer->look_ahead(size, static_cast<double>(lag));
    LW_CHECK(formula.has_value());
    on->update(buffers.range(range.begin, range.end), *formula);
  }
  for (const Blob& slot : slots) on->end_read(slot);
  for (const Blob& blob : written) on->end_write(blob);
  on->end_read(state.weights);
  on->end_write(predicted);
  return predicted;
}

}  // namespace leeway
