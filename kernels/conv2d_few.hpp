#pragma once
// conv2d for images of few channels, as a model's first layer gets them: direct, in registers.
//
// oneDNN computes these in channels-last layout at a third to a half of its usual speed, for want
// of channels to fill a vector with. Here vectors run over outputs: forward keeps a tile of y in
// registers while it goes over the T = K K C taps of the window, backward a tile of dweight while
// it goes over the pixels. Used by conv2d.cpp alone, where conv2d_few_fits says so.
#include "kernels/conv2d.hpp"

namespace leeway::kernels {

/// Whether these functions take the shape, and are the faster ones on this processor.
bool conv2d_few_fits(const Conv2dShape& shape);

/// Bytes of the packed weights: (T, O rounded up to whole vectors).
std::size_t conv2d_few_packed_bytes(const Conv2dShape& shape);
/// packed = weight (O, C, K, K), in one slice.
void conv2d_few_pack(float* packed, const float* weight, const Conv2dShape& shape);

/// As conv2d_forward.
void conv2d_few_forward(float* y, const float* x, const float* packed, const float* bias,
                        const Conv2dShape& shape);

/// dweight (O, C, K, K), in one slice, and dbias (O; may be null), as conv2d_backward.
void conv2d_few_backward_weights(float* dweight, float* dbias, const float* dy, const float* x,
                                 const Conv2dShape& shape);

}  // namespace leeway::kernels
