#pragma once
// The weights of a run as floats, tensor by tensor, to compare runs with different blocks.
#include <algorithm>
#include <vector>

#include "actors/job.hpp"
#include "models/safetensors.hpp"
#include "runtime/result.hpp"

namespace leeway::test {

/// Tensors are in the model's order.
inline std::vector<float> weights_of(const Result& result) {
  std::vector<float> all;
  for (const auto& tensor : *result.weights)
    all.insert(all.end(), tensor.data.as_floats(), tensor.data.as_floats() + tensor.shape.count());
  return all;
}

/// The same from blocks.
inline std::vector<float> weights_of(const Job& job, const std::vector<Blob>& blocks) {
  std::vector<std::vector<float>> tensors;
  for (const auto& parameter : job.model->parameters())
    tensors.emplace_back(static_cast<std::size_t>(parameter.spec.shape.count()));
  for (const auto& block : job.layout->blocks())
    for (const auto& slice : block.slices) {
      const auto tensor = static_cast<std::size_t>(slice.parameter);
      std::copy_n(blocks[block.id.value()].as_floats() + slice.offset, slice.floats,
                  tensors[tensor].begin() + slice.first);
    }
  std::vector<float> all;
  for (const auto& tensor : tensors) all.insert(all.end(), tensor.begin(), tensor.end());
  return all;
}

}  // namespace leeway::test
