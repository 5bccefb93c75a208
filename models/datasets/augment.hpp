#pragma once
// Random changes to training images, so that a model sees each one in many views.
#include <cstdint>
#include <span>

#include "core/expected.hpp"
#include "plan/plan.hpp"
#include "tensor/shape.hpp"

namespace leeway {

/// Whether samples of this shape can be augmented so: anything can be left as it is, but only
/// images (C, H, W) can be flipped, and shifted by less than their height and width.
Status check_augment(const plan::Augment& augment, const Shape& sample);

/// x (B, C, H, W) = a view of each image: flipped left to right every other time, then shifted by
/// -shift to shift pixels each way, uniformly. Pixels that come in are `fill`, the value of an
/// empty pixel after whatever the data set does to its values (Dataset::background). `sample`: (C,
/// H, W); keys: (B). A view depends on the sample's key alone, not on the batch that it came in.
/// Requires what check_augment says.
void augment(float* x, const plan::Augment& augment, const Shape& sample, float fill,
             std::span<const std::uint64_t> keys);

}  // namespace leeway
