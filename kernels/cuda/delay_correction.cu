#include <variant>

#include "kernels/cuda/families.hpp"
#include "kernels/cuda/parallel.hpp"

namespace leeway::kernels::cuda {

namespace {

template <class Formula>
__global__ void __launch_bounds__(kThreads) correct_kernel(DelayBuffers at, Formula formula) {
  for (std::int64_t i = first_index(); i < at.count; i += index_step()) {
    const float g = at.clipping.of(at.g[i]);
    const float step = at.step ? at.step[i] : g;
    float mean = 0;
    if constexpr (Formula::kMean) mean = at.mean[i];
    at.g_out[i] = formula(g, at.w[i] - at.pulled[i], step, mean);
    if constexpr (Formula::kMean) at.mean_out[i] = mean;
  }
}

}  // namespace

void correct_delay(On on, const DelayBuffers& buffers, const DelayFormula& formula) {
  if (buffers.count == 0) return;
  std::visit(
      [&](const auto& f) {
        launch(on, blocks_for(buffers.count), kThreads, correct_kernel<std::decay_t<decltype(f)>>,
               buffers, f);
      },
      formula);
}

}  // namespace leeway::kernels::cuda
