#include <variant>

#include "kernels/cuda/families.hpp"
#include "kernels/cuda/parallel.hpp"

namespace leeway::kernels::cuda {

namespace {

/// Applies the formula to the weight and state of one element.
template <class Formula>
__device__ void apply(const Formula& formula, float& w, float& a, float& b, float& c, float g) {
  if constexpr (Formula::kSlots == 0) formula(w, g);
  if constexpr (Formula::kSlots == 1) formula(w, a, g);
  if constexpr (Formula::kSlots == 2) formula(w, a, b, g);
  if constexpr (Formula::kSlots == 3) formula(w, a, b, c, g);
}

/// Updates elements [begin, count), one per thread and step.
template <class Formula>
__global__ void __launch_bounds__(kThreads)
    update_kernel(UpdateBuffers at, std::int64_t begin, Formula formula) {
  for (std::int64_t i = begin + first_index(); i < at.count; i += index_step()) {
    float w = at.w[i], a = 0, b = 0, c = 0;
    if constexpr (Formula::kSlots > 0) a = at.state[0][i];
    if constexpr (Formula::kSlots > 1) b = at.state[1][i];
    if constexpr (Formula::kSlots > 2) c = at.state[2][i];
    apply(formula, w, a, b, c, at.clipping.of(at.g[i]));
    at.w_out[i] = w;
    if constexpr (Formula::kSlots > 0) at.state_out[0][i] = a;
    if constexpr (Formula::kSlots > 1) at.state_out[1][i] = b;
    if constexpr (Formula::kSlots > 2) at.state_out[2][i] = c;
  }
}

__device__ float4 load4(const float* from, std::int64_t i) {
  return reinterpret_cast<const float4*>(from)[i];
}
__device__ void store4(float* to, std::int64_t i, float4 value) {
  reinterpret_cast<float4*>(to)[i] = value;
}

/// Updates elements [4 i, 4 i + 4) per thread and step; reads all four before it writes one.
template <class Formula>
__global__ void __launch_bounds__(kThreads)
    update4_kernel(UpdateBuffers at, std::int64_t fours, Formula formula) {
  for (std::int64_t i = first_index(); i < fours; i += index_step()) {
    float4 w = load4(at.w, i), a{}, b{}, c{};
    const float4 g = load4(at.g, i);
    if constexpr (Formula::kSlots > 0) a = load4(at.state[0], i);
    if constexpr (Formula::kSlots > 1) b = load4(at.state[1], i);
    if constexpr (Formula::kSlots > 2) c = load4(at.state[2], i);
    apply(formula, w.x, a.x, b.x, c.x, at.clipping.of(g.x));
    apply(formula, w.y, a.y, b.y, c.y, at.clipping.of(g.y));
    apply(formula, w.z, a.z, b.z, c.z, at.clipping.of(g.z));
    apply(formula, w.w, a.w, b.w, c.w, at.clipping.of(g.w));
    store4(at.w_out, i, w);
    if constexpr (Formula::kSlots > 0) store4(at.state_out[0], i, a);
    if constexpr (Formula::kSlots > 1) store4(at.state_out[1], i, b);
    if constexpr (Formula::kSlots > 2) store4(at.state_out[2], i, c);
  }
}

template <class Formula>
void run(On on, const UpdateBuffers& at, const Formula& formula) {
  const bool aligned = aligned16(at.w_out, at.w, at.g, at.state[0], at.state[1], at.state[2],
                                 at.state_out[0], at.state_out[1], at.state_out[2]);  // null is
  const std::int64_t fours = aligned ? at.count / 4 : 0;
  if (fours > 0)
    launch(on, blocks_for(fours), kThreads, update4_kernel<Formula>, at, fours, formula);
  const std::int64_t rest = at.count - 4 * fours;
  if (rest > 0)
    launch(on, blocks_for(rest), kThreads, update_kernel<Formula>, at, 4 * fours, formula);
}

}  // namespace

void update(On on, const UpdateBuffers& buffers, const UpdateFormula& formula) {
  std::visit([&](const auto& f) { run(on, buffers, f); }, formula);
}

}  // namespace leeway::kernels::cuda
