#pragma once
// dropout: zeroes numbers at random and scales up the rest (Srivastava et al. 2014, inverted form).
//
// Which ones is decided by a counter-based generator (Philox4x32-10, Salmon et al. 2011), keyed by
// sample and layer and counting elements: so forward and backward, the CPU and the GPU, and any cut
// of a batch agree on the mask, and nothing is kept between them.
#include <cstdint>

namespace leeway::kernels {

struct DropoutShape {
  std::int64_t batch = 0, count = 0;  // samples, and numbers of one
  float probability = 0.5f;           // of being zeroed, in [0, 1)
  std::uint32_t salt = 0;             // tells the dropout layers of a model apart
};

/// y = x / (1 - p) where the mask keeps it, else 0. y, x: (B, count); y may be x. keys: (B), one a
/// sample. Backward is the same function on gradients.
void dropout(float* y, const float* x, const std::uint64_t* keys, const DropoutShape& shape);

}  // namespace leeway::kernels
