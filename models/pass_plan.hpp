#pragma once
// PassPlan: which buffer holds each layer's output, and each gradient, of a chunk of a model.
//
// Outputs: an in-place layer overwrites its input, unless that is the chunk's input, or another
// layer still reads it. With backward, every other output has a separate buffer. Without
// backward, a buffer is reused as soon as its last reader is done.
//
// Gradients: a buffer holds the gradient of one output. It is taken when the first reader of that
// output computes the gradient, and is free after the backward of the layer. Where two layers read
// one output, their gradients are added.
#include <cstdint>
#include <vector>

#include "models/model.hpp"

namespace leeway {

struct PassPlanOptions {
  bool backward = true;
  /// Several micro-batches can be between forward and backward at once: the loss's gradient stays
  /// with its micro-batch, and shares memory with no other gradient.
  bool several = false;
  /// Backward comes as a backward for inputs and a later backward for weights: the gradients of
  /// outputs that the latter reads stay until it is done.
  bool split_backward = false;
};

struct PassPlan {
  static constexpr int kNone = -1;

  /// One step of backward, in gradient buffers.
  struct Op {
    enum class Kind : std::uint8_t {
      layer,  // the layer's backward, from buffer `from` to buffer `to`; kNone: no layer reads dx
      add,    // to += from
      copy,   // to = from
    };
    Kind kind{};
    int to = kNone;
    int from = kNone;
    std::int64_t floats = 0;  // a sample, for add and copy
  };

  /// The memory of a gradient buffer.
  enum class Place : std::uint8_t {
    working,  // in the pass: free after the backward of a micro-batch
    kept,     // with the micro-batch's activations: written by the loss
    pending,  // with the micro-batch, until its backward for weights
    outside,  // in a blob: a read-only one from the next chunk, or one for the previous chunk
  };

  PassPlan(const Model& model, bool with_backward)
      : PassPlan(model, ModelChunk::whole(model), {.backward = with_backward}) {}
  PassPlan(const Model& model, ModelChunk chunk, PassPlanOptions options);

  ModelChunk chunk;
  std::vector<int> output;                    // per layer: its buffer; kNone: the input's memory
  std::vector<std::int64_t> output_floats;    // per buffer, a sample
  std::vector<std::vector<Op>> backward;      // per layer, in order
  std::vector<std::int64_t> gradient_floats;  // per gradient buffer, a sample
  std::vector<Place> gradient_place;          // per gradient buffer
  int output_gradient = kNone;         // buffer that the loss writes, or the next chunk sends
  bool keeps_output_gradient = false;  // the backward for weights reads the next chunk's gradient
  int input_gradient = kNone;          // buffer for the previous chunk; kNone: it needs none

  /// The buffer of `layer`'s output; kNone for a layer before the chunk, and for views on it.
  int output_of(int layer) const {
    return layer < chunk.first ? kNone : output[static_cast<std::size_t>(layer)];
  }

  /// Whether the backward of a layer reads the output of the chunk.
  bool backward_reads_output(const Model& model) const;

 private:
  class Gradients;
  void place_outputs(const Model& model, bool with_backward);
  void place_gradients(const Model& model, PassPlanOptions options);
};

}  // namespace leeway
