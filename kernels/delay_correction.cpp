#include "kernels/delay_correction.hpp"

#include <utility>

namespace leeway::kernels {

namespace {

template <bool kClips, bool kStep, class Formula>
LW_INLINE void stream(const DelayBuffers& buffers, Formula formula) {
  float* const g_out = buffers.g_out;
  float* const mean_out = buffers.mean_out;
  const float* const g_in = buffers.g;
  const float* const w_in = buffers.w;
  const float* const pulled_in = buffers.pulled;
  const float* const step_in = buffers.step;
  const float* const mean_in = buffers.mean;
  const Clipping clipping = buffers.clipping;
  const std::int64_t count = buffers.count;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float g = kClips ? clipping.of(g_in[i]) : g_in[i];
    const float step = kStep ? step_in[i] : g;
    float mean = 0;
    if constexpr (Formula::kMean) mean = mean_in[i];
    g_out[i] = formula(g, w_in[i] - pulled_in[i], step, mean);
    if constexpr (Formula::kMean) mean_out[i] = mean;
  }
}

/// As in update.cpp: std::visit would hide the loops from the instruction sets of LW_SIMD.
template <std::size_t... Indices>
LW_INLINE void dispatch(const DelayBuffers& buffers, const DelayFormula& formula,
                        std::index_sequence<Indices...>) {
  const auto run_if_held = [&](const auto* held) LW_INLINE_LAMBDA {
    if (!held) return;
    const bool clips = buffers.clipping.clips(), has_step = buffers.step != nullptr;
    if (clips && has_step) stream<true, true>(buffers, *held);
    if (clips && !has_step) stream<true, false>(buffers, *held);
    if (!clips && has_step) stream<false, true>(buffers, *held);
    if (!clips && !has_step) stream<false, false>(buffers, *held);
  };
  (run_if_held(std::get_if<Indices>(&formula)), ...);
}

}  // namespace

LW_SIMD void correct_delay(const DelayBuffers& buffers, const DelayFormula& formula) {
  dispatch(buffers, formula, std::make_index_sequence<std::variant_size_v<DelayFormula>>());
}

}  // namespace leeway::kernels
