#pragma once
// max_pool2d of 2x2 tiles for images of few channels: vectors run along a row of pixels and their
// channels, where the channels of one pixel alone would leave most of a vector empty. Used by
// pool2d.cpp alone, where max_pool2d_few_fits says so.
#include "kernels/pool2d.hpp"

namespace leeway::kernels {

bool max_pool2d_few_fits(const Pool2dShape& shape);

/// As max_pool2d_forward and max_pool2d_backward.
void max_pool2d_few_forward(float* y, std::uint8_t* from, const float* x, const Pool2dShape& shape);
void max_pool2d_few_backward(float* dx, const float* dy, const std::uint8_t* from,
                             const Pool2dShape& shape);

}  // namespace leeway::kernels
