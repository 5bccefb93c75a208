#include "kernels/update.hpp"

#include <utility>

namespace leeway::kernels {

namespace {

/// The loop of every update. `omp simd` states that iterations are independent, also in place,
/// where the compiler's overlap check would fall back to scalar code.
template <bool kClips, class Formula>
LW_INLINE void stream(const UpdateBuffers& buffers, Formula formula) {
  float* const w_out = buffers.w_out;
  float* const a_out = buffers.state_out[0];
  float* const b_out = buffers.state_out[1];
  float* const c_out = buffers.state_out[2];
  const float* const w_in = buffers.w;
  const float* const a_in = buffers.state[0];
  const float* const b_in = buffers.state[1];
  const float* const c_in = buffers.state[2];
  const float* const g_in = buffers.g;
  const Clipping clipping = buffers.clipping;  // a copy, which no store can change
  const std::int64_t count = buffers.count;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    float w = w_in[i];
    const float g = kClips ? clipping.of(g_in[i]) : g_in[i];
    if constexpr (Formula::kSlots == 0) {
      formula(w, g);
    } else if constexpr (Formula::kSlots == 1) {
      float a = a_in[i];
      formula(w, a, g);
      a_out[i] = a;
    } else if constexpr (Formula::kSlots == 2) {
      float a = a_in[i];
      float b = b_in[i];
      formula(w, a, b, g);
      a_out[i] = a;
      b_out[i] = b;
    } else {
      float a = a_in[i];
      float b = b_in[i];
      float c = c_in[i];
      formula(w, a, b, c, g);
      a_out[i] = a;
      b_out[i] = b;
      c_out[i] = c;
    }
    w_out[i] = w;
  }
}

/// Runs the formula that `formula` holds. Not std::visit: its table of functions would hide the
/// loops from the instruction sets of LW_SIMD.
template <std::size_t... Indices>
LW_INLINE void dispatch(const UpdateBuffers& buffers, const UpdateFormula& formula,
                        std::index_sequence<Indices...>) {
  const auto run_if_held = [&](const auto* held) LW_INLINE_LAMBDA {
    if (held && buffers.clipping.clips()) stream<true>(buffers, *held);
    if (held && !buffers.clipping.clips()) stream<false>(buffers, *held);
  };
  (run_if_held(std::get_if<Indices>(&formula)), ...);
}

}  // namespace

UpdateBuffers UpdateBuffers::range(std::int64_t begin, std::int64_t end) const {
  UpdateBuffers part = *this;
  part.count = end - begin;
  part.w += begin;
  part.w_out += begin;
  part.g += begin;
  if (pulled) part.pulled += begin;
  for (int slot = 0; slot < kMaxSlots; ++slot) {
    if (!state[slot]) break;
    part.state[slot] += begin;
    part.state_out[slot] += begin;
  }
  return part;
}

LW_SIMD void update(const UpdateBuffers& buffers, const UpdateFormula& formula) {
  dispatch(buffers, formula, std::make_index_sequence<std::variant_size_v<UpdateFormula>>());
}

}  // namespace leeway::kernels
