#pragma once
// dropout: zeroes random elements and scales up the rest (Srivastava et al. 2014, inverted form).
//
// The mask comes from a counter-based generator (Philox4x32-10, Salmon et al. 2011), keyed by
// sample and layer and counting elements. So forward and backward, CPU and GPU, and every split of
// a batch agree on the mask without storing it.
#include <cstdint>

namespace leeway::kernels {

struct DropoutShape {
  std::int64_t batch = 0, count = 0;  // samples, and elements of a sample
  float probability = 0.5f;           // that an element is zeroed, in [0, 1)
  std::uint32_t salt = 0;             // different for each dropout layer of a model
};

/// y = x / (1 - p) where the mask keeps an element, else 0. y, x: (B, count); y may be x. keys:
/// (B), one per sample. Backward is the same function on gradients.
void dropout(float* y, const float* x, const std::uint64_t* keys, const DropoutShape& shape);

}  // namespace leeway::kernels
