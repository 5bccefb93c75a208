#pragma once
// Layer times: how long each layer of a model takes for a micro-batch, estimated or measured.
#include <cstdint>
#include <span>
#include <vector>

#include "models/pass.hpp"

namespace leeway {

/// Nanoseconds per micro-batch.
struct LayerTime {
  std::int64_t forward = 0;
  std::int64_t backward_input = 0;    // 0 if no layer needs the gradient of its input
  std::int64_t backward_weights = 0;  // 0 if it has no trained parameters
};

/// Estimates from shapes: the longer of arithmetic at `flops_per_second` and memory traffic at
/// `bytes_per_second`. The backward for inputs and that for weights each cost as much as forward,
/// see Layer::flops().
std::vector<LayerTime> estimated_times(const Model& model, std::int64_t batch,
                                       double flops_per_second, double bytes_per_second);

/// Computes the batch several times, with random weights, and returns the median per layer, without
/// packing of weights and without the loss. The time of a backward is divided between inputs and
/// weights as in estimated_times().
std::vector<LayerTime> measured_times(const std::shared_ptr<const Model>& model, const Batch& batch,
                                      std::shared_ptr<Executor> on);

}  // namespace leeway
