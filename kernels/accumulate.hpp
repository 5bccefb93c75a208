#pragma once
// accumulate: the one way in which gradients are summed.
//
// Micro-batches on a worker and workers on a shard are added by this function, each in its fixed
// order, so both give the same bits: what one worker computes with n micro-batches is what n
// workers compute with one.
#include <cstdint>

namespace leeway::kernels {

enum class Write { assign, add };

/// acc = scale * g, or acc += scale * g. Element i depends on element i alone, not on `count` or
/// alignment. acc, g: (count); they do not overlap.
void accumulate(float* acc, const float* g, float scale, std::int64_t count, Write write);

}  // namespace leeway::kernels
