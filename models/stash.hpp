#pragma once
// Stash: the state of one micro-batch in a ChunkPass, from its forward to the end of its backward.
// ChunkPass creates, fills and empties it.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/executor.hpp"
#include "models/model.hpp"
#include "models/pack_cache.hpp"
#include "tensor/blob.hpp"

namespace leeway {

/// Host memory, read until the pass's result is known. Images are (C, H, W), as in data sets.
struct Batch {
  std::int64_t size = 0;                       // B
  const float* x = nullptr;                    // (B, input)
  const std::int32_t* labels = nullptr;        // (B, labels), for data with classes
  const float* targets = nullptr;              // (B, target_count), for data without
  std::span<const std::uint64_t> sample_keys;  // B; empty or ignored in evaluation
  /// Factor of the gradient of the loss, and so of the gradients of all activations and parameters:
  /// above 1, small ones do not become 0 in fp16 (Micikevicius et al., ICLR 2018, section 3.2). The
  /// caller divides the gradients of parameters by it. It multiplies neither the loss nor
  /// statistics (ParameterSpec::average > 0). With a power of two the quotients have the bits of
  /// factor 1, except where numbers are infinite or subnormal.
  float loss_scale = 1;
};

/// The input of one chunk for a micro-batch.
struct ChunkInput {
  /// The first chunk reads `x`, the last chunk labels or targets and the loss scale, and every
  /// chunk size and keys.
  Batch batch;
  /// First chunk: host memory with the samples. It replaces batch.x, which would have to stay until
  /// backward is done. Other chunks: the output of the previous chunk, (B, its shape).
  /// Host memory is read until the work that start_forward() starts is done (Executor::wait_mark).
  Blob input;
};

/// True for images with several channels: data sets store channels first, layers read them last.
inline bool moves_samples(const Shape& input) {
  return input.rank() == 3 && input[0] > 1 && input[1] * input[2] > 1;
}

/// Buffers that forward saves for backward.
struct Activations {
  std::vector<Blob> outputs;  // by the plan's buffers: (max_batch, floats)
  std::vector<Blob> kept;     // per layer of the chunk
  Blob loss_gradient;         // in the last chunk: (max_batch, output), if the plan keeps it
};

class Stash {
 public:
  /// Bytes that it holds now: input, labels, activations, and gradients that wait for a backward
  /// for weights.
  std::int64_t bytes() const;

 private:
  friend class ChunkPass;
  friend class LayerRunner;
  friend class PassMemory;

  /// The model, chunk and sizes that a stash serves.
  struct Form {
    const Model& model;
    ModelChunk chunk;
    std::int64_t max_batch = 0;
    bool training = true;
    bool recompute = false;
  };
  /// Moves the batch, or the activation, to the device, and images into the layout of the layers.
  void read_input(const Form& form, Executor& on, const ChunkInput& given);
  void read_sample_keys(const Form& form, Executor& on, std::span<const std::uint64_t> given);
  /// Moves labels or targets to the device.
  void read_labels(const Form& form, Executor& on, const Batch& given);

  // The inputs of the forward, and where layers read them.
  std::int64_t size = 0;  // samples
  Blob input;             // the activation, or host memory with the samples; can be empty
  const float* x = nullptr;
  const std::uint64_t* keys = nullptr;
  const std::int32_t* labels = nullptr;
  const float* targets = nullptr;
  float loss_scale = 1;

  // Memory of the pass's device, for max_batch samples; it stays after release().
  Blob samples;            // on a GPU: (max_batch, input)
  Blob moved;              // images, channels last: (max_batch, input)
  Blob sample_keys;        // (max_batch)
  Blob copied_labels;      // labels or targets: (max_batch, output)
  Blob labels_as_numbers;  // host memory: (max_batch, 1)
  Blob loss;               // host memory: kernels::ClassLoss

  std::optional<Activations> activations;
  Blob output;                // goes to the next chunk
  Blob output_gradient;       // came from the next chunk
  Blob input_gradient;        // goes to the previous chunk
  std::vector<Blob> pending;  // by the plan's gradient buffers: wait for the backward for weights

  // Packed weights in use, and the versions of all parameters.
  struct Packed {
    int parameter;
    kernels::PackForm form;
    Blob blob;
  };
  std::vector<Packed> packed;
  std::vector<std::uint64_t> versions;
  PackCache* packs = nullptr;

  enum class State : std::uint8_t { empty, forward_done, in_backward, inputs_done, done };
  State state = State::empty;
  bool taken = false;
  int next_backward = -1;  // the next layer of a backward; -1 outside of one
};

}  // namespace leeway
