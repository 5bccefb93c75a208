#pragma once
// accumulate: sums gradients.
//
// A worker adds up its micro-batches and a shard adds up its workers with this function, each in a
// fixed order. So one worker with n micro-batches computes the same bits as n workers with one.
#include <cstdint>

namespace leeway::kernels {

enum class Write { assign, add };

/// acc = scale * g, or acc += scale * g. acc, g: (count); they do not overlap. The rounding of an
/// element depends neither on `count` nor on alignment.
void accumulate(float* acc, const float* g, float scale, std::int64_t count, Write write);

}  // namespace leeway::kernels
