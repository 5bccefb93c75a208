#include "policies/optimizer/muon.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/check.hpp"
#include "policies/optimizer/orthogonal.hpp"
#include "policies/optimizer/weighted.hpp"

namespace leeway {

void Muon::update(Executor& on, const kernels::UpdateBuffers& buffers,
                  const UpdateSize& size) const {
  if (size.columns == 0) return Optimizer::update(on, buffers, size);
  check(buffers, size);
  LW_CHECK(on.device().kind != Device::Kind::cuda, name());
  LW_CHECK(size.floats <= buffers.count && size.floats % size.columns == 0, size.floats,
           size.columns);
  const std::int64_t rows = size.floats / size.columns;
  const auto keep = static_cast<float>(std::pow(factor_, size.weight));
  const auto gain = static_cast<float>(velocity_gain(factor_, size.weight) * size.gain);
  std::vector<float> step(static_cast<std::size_t>(size.floats));
  for (std::int64_t i = 0; i < size.floats; ++i) {
    const float push = gain * buffers.clipping.of(buffers.g[i]);
    const float m = keep * buffers.state[0][i] + push;
    buffers.state_out[0][i] = m;
    step[static_cast<std::size_t>(i)] = push + keep * m;
  }
  orthogonalise(step.data(), rows, size.columns);
  const double rate = size.learning_rate * size.weight;
  const auto length =
      static_cast<float>(rate * 0.2 * std::sqrt(static_cast<double>(std::max(rows, size.columns))));
  const auto shrink = static_cast<float>(1 - rate * decay_ * size.decay);
  for (std::int64_t i = 0; i < size.floats; ++i)
    buffers.w_out[i] = shrink * buffers.w[i] - length * step[static_cast<std::size_t>(i)];
  // The padding, and the array that matrices do not use.
  const auto keep_rest = [&](float* to, const float* from, std::int64_t first) {
    if (to != from) std::copy(from + first, from + buffers.count, to + first);
  };
  keep_rest(buffers.w_out, buffers.w, size.floats);
  keep_rest(buffers.state_out[0], buffers.state[0], size.floats);
  keep_rest(buffers.state_out[1], buffers.state[1], 0);
}

}  // namespace leeway
