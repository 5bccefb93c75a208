#pragma once
// Random augmentation of training images: flips and shifts.
#include <cstdint>
#include <span>

#include "core/expected.hpp"
#include "plan/plan.hpp"
#include "tensor/shape.hpp"

namespace leeway {

/// Whether samples of this shape can be augmented: only images (C, H, W) can be flipped, and only
/// shifted by less than their height and width. Without augmentation any shape is allowed.
Status check_augment(const plan::Augment& augment, const Shape& sample);

/// x (B, C, H, W) = a view of each image: flipped left to right with probability 1/2, then shifted
/// by -shift to shift pixels in each direction, uniformly. Pixels from outside of the image are
/// `fill`, usually Dataset::background. `sample`: (C, H, W); keys: (B). A view depends only on the
/// sample's key, not on its batch. Requires that check_augment() accepts the arguments.
void augment(float* x, const plan::Augment& augment, const Shape& sample, float fill,
             std::span<const std::uint64_t> keys);

}  // namespace leeway
