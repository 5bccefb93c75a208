#pragma once
// Along a pipeline, between its stages: values of stage_stage.capnp, which documents each field.
#include <cstdint>
#include <vector>

#include "core/ids.hpp"
#include "messages/worker_scheduler.hpp"
#include "tensor/blob.hpp"
#include "tensor/dtype.hpp"
#include "tensor/shape.hpp"

namespace leeway::msg {

struct MiniBatch {
  std::uint64_t start = 0;
  Iteration iteration;
  Epoch epoch;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::uint32_t round_samples = 1;
  std::vector<AppliedBucket> applied;
};

struct NoMore {
  std::uint64_t start = 0;
  Iteration iteration;
};

/// Never without data.
struct StageTensor {
  DType dtype = DType::f32;
  Shape shape;
  Blob data;
};

struct Activation {
  std::uint64_t start = 0;
  Iteration iteration;
  std::uint32_t micro_batch = 0;
  std::uint32_t chunk = 0;
  StageTensor tensor;
};

struct OutputGradient {
  std::uint64_t start = 0;
  Iteration iteration;
  std::uint32_t micro_batch = 0;
  std::uint32_t chunk = 0;
  StageTensor tensor;
  Clock clock;
};

struct GivenUp {
  std::uint64_t start = 0;
  Iteration iteration;
};

}  // namespace leeway::msg
