#include "actors/worker/local_optimizer.hpp"

#include <algorithm>
#include <utility>

#include "actors/apply_ranges.hpp"
#include "actors/rewrite.hpp"
#include "policies/optimizer/clip.hpp"

namespace leeway {

LocalOptimizer::LocalOptimizer(std::shared_ptr<const Job> job)
    : job_(std::move(job)), state_(job_->layout->blocks().size()) {
  for (const Block& block : job_->layout->blocks())
    if (!block.frozen)
      floats_of_step_ += block.floats * (block.average > 0 ? 3 : job_->local_optimizer->streams());
}

void LocalOptimizer::step(Executor& on, std::vector<Blob>& weights, std::vector<Blob> gradients,
                          double samples) {
  const plan::Optimizer& settings = job_->plan.optimizer;
  for (const Blob& gradient : gradients) on.begin_read(gradient);
  float scale = 1;
  if (settings.clip_norm > 0) {
    double squares = 0;
    for (const Block& block : job_->layout->blocks())
      if (Job::is_stepped(block))
        squares += on.sum_of_squares(gradients[block.id.value()].as_floats(), block.floats);
    scale = clip_scale(squares, settings.clip_norm);
  }
  ++steps_;
  const double rate = job_->learning_rate(samples);
  for (const Block& block : job_->layout->blocks()) {
    const Blob& gradient = gradients[block.id.value()];
    if (!block.frozen) step(on, block, weights[block.id.value()], gradient, rate, scale);
    on.end_read(gradient);
  }
}

void LocalOptimizer::step(Executor& on, const Block& block, Blob& weights, const Blob& gradient,
                          double rate, float scale) {
  Rewrite rewrite(on, weights);
  kernels::UpdateBuffers buffers;
  buffers.count = block.floats;
  buffers.g = gradient.as_floats();
  buffers.w = rewrite.from();
  buffers.w_out = rewrite.to();
  if (block.average > 0) {
    on.update(buffers, kernels::AverageFormula{static_cast<float>(block.average)});
    return rewrite.done();
  }
  const Optimizer& optimizer = *job_->local_optimizer;
  const plan::Optimizer& settings = job_->plan.optimizer;
  auto& state = state_[block.id.value()];
  for (int slot = static_cast<int>(state.size()); slot < optimizer.slots(); ++slot)
    state.push_back(on.filled(block.floats, optimizer.initial_state(slot)));
  for (std::size_t slot = 0; slot < state.size(); ++slot) {
    on.begin_write(state[slot]);
    buffers.state[slot] = state[slot].as_floats();
    buffers.state_out[slot] = state[slot].mutable_floats();
  }
  buffers.clipping.scale = scale;
  if (settings.clip_value > 0) buffers.clipping.limit = static_cast<float>(settings.clip_value);
  apply_ranges(on, optimizer, *job_->model, job_->local_ranges[block.id.value()], buffers,
               {.learning_rate = rate, .progress = steps_, .largest_rate = settings.learning_rate});
  for (const Blob& array : state) on.end_write(array);
  rewrite.done();
}

}  // namespace leeway
