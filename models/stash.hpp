#pragma once
// Stash: what a part of a model keeps of one micro-batch, from its forward until its backward is
// done. PartPass makes, fills and empties it.
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "models/pack_cache.hpp"
#include "tensor/blob.hpp"

namespace leeway {

/// What layers leave for backward.
struct Activations {
  std::vector<Blob> outputs;  // by the plan's buffers: (max_batch, floats)
  std::vector<Blob> kept;     // per layer of the part
  Blob loss_gradient;         // of the last part: (max_batch, output), if it is kept
};

class Stash {
 public:
  /// Bytes that it holds now: what came from other parts or was given, what its own layers have
  /// left, and the gradients between the halves of a backward.
  std::int64_t bytes() const;

 private:
  friend class PartPass;

  // What the forward was given, and where layers read it.
  std::int64_t size = 0;  // samples
  Blob input;             // the activation, or host memory with the samples; may be empty
  const float* x = nullptr;
  const std::uint64_t* keys = nullptr;
  const std::int32_t* labels = nullptr;
  const float* targets = nullptr;

  // Memory of the pass's device, for max_batch samples; it stays when the stash is given back.
  Blob samples;      // on a GPU: (max_batch, input)
  Blob moved;        // images, channels last: (max_batch, input)
  Blob sample_keys;  // (max_batch)
  Blob told;         // labels or targets: (max_batch, output)
  Blob numbers;      // host memory: labels as numbers, (max_batch, 1)
  Blob loss;         // host memory: kernels::ClassLoss

  std::optional<Activations> activations;
  Blob output;             // what goes to the next part
  Blob output_gradient;    // what came from there
  Blob input_gradient;     // what goes to the part before
  std::vector<Blob> open;  // by the plan's gradient buffers, between the halves

  // Packed weights in use, and what they are keyed by.
  std::vector<Blob> packed;
  std::vector<std::uint64_t> versions;
  PackCache* packs = nullptr;

  enum class State : std::uint8_t { empty, forward_done, in_backward, inputs_done, done };
  State state = State::empty;
  bool taken = false;
  int next_backward = -1;  // the layer whose backward is due; -1 when none is
};

}  // namespace leeway
