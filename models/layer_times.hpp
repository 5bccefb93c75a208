#pragma once
// Layer times: how long each layer of a model takes for a micro-batch, estimated or measured.
#include <cstdint>
#include <span>
#include <vector>

#include "models/pass.hpp"

namespace leeway {

/// Nanoseconds of one micro-batch.
struct LayerTime {
  std::int64_t forward = 0;
  std::int64_t backward_input = 0;    // 0 where nobody wants the gradient of its input
  std::int64_t backward_weights = 0;  // 0 where nothing is trained
};

/// From shapes: arithmetic at so many operations a second, or memory at so many bytes, whichever
/// is longer. Each half of a backward computes as much as forward, see Layer::flops().
std::vector<LayerTime> estimated_times(const Model& model, std::int64_t batch,
                                       double flops_per_second, double bytes_per_second);

/// Computes the batch several times, with weights drawn from a seed, and takes the median of each
/// layer; packing weights for the kernels is not counted. What backward takes is shared out to its
/// halves as estimated_times() would. The loss is not counted.
std::vector<LayerTime> measured_times(const std::shared_ptr<const Model>& model, const Batch& batch,
                                      std::shared_ptr<Executor> on);

}  // namespace leeway
