#include "policies/delay/delay_aware.hpp"

#include <algorithm>

#include "core/check.hpp"

namespace leeway {
namespace {

/// Floats of a corrected gradient that stay in the cache of a core until they are applied.
constexpr std::int64_t kCachedFloats = 4096;

}  // namespace

/// A correction reads the gradient and two versions of the weights, and on a GPU writes a gradient.
int DelayAware::streams() const {
  return Optimizer::streams() + (policy_->compares_weights() ? 3 : 0);
}

kernels::UpdateFormula DelayAware::formula(const UpdateSize& size) const {
  const double factor = policy_->step_factor(size);
  UpdateSize own = size;
  (optimizer_->has_velocity() ? own.gain : own.learning_rate) *= factor;
  return policy_->formula(*optimizer_, own);
}

void DelayAware::update(Executor& on, const kernels::UpdateBuffers& buffers,
                        const UpdateSize& size) const {
  check(buffers, size);
  const auto correction = policy_->correction(size);
  if (!correction || buffers.count == 0) return on.update(buffers, formula(size));
  LW_CHECK(buffers.pulled != nullptr, policy_->name());
  const std::int64_t at_once = on.device().kind == Device::Kind::cuda
                                   ? buffers.count
                                   : std::min(kCachedFloats, buffers.count);
  Blob corrected = on.floats(at_once);
  const kernels::UpdateFormula step = formula(size);
  for (std::int64_t begin = 0; begin < buffers.count; begin += at_once) {
    auto part = buffers.range(begin, std::min(begin + at_once, buffers.count));
    on.correct_delay(delay_buffers(part, corrected.mutable_floats()), *correction);
    part.g = corrected.as_floats();
    part.clipping = {};
    on.update(part, step);
  }
  on.end_write(corrected);
}

kernels::DelayBuffers DelayAware::delay_buffers(const kernels::UpdateBuffers& buffers,
                                                float* g_out) const {
  kernels::DelayBuffers delay{.count = buffers.count,
                              .g_out = g_out,
                              .g = buffers.g,
                              .w = buffers.w,
                              .pulled = buffers.pulled,
                              .clipping = buffers.clipping};
  if (optimizer_->has_velocity()) delay.step = buffers.state[0];
  if (policy_->slots() > 0) {
    delay.mean = buffers.state[optimizer_->slots()];
    delay.mean_out = buffers.state_out[optimizer_->slots()];
  }
  return delay;
}

}  // namespace leeway
