#pragma once
// PassPlan: which memory each layer's output takes, and each gradient. Decided once for a model, or
// for a part of one, whose input and output come from and go to elsewhere.
//
// Outputs: an in-place layer overwrites its input, unless that is the part's input, or somebody
// else still reads it. With backward every other output has a buffer of its own; without, buffers
// are reused as soon as the last reader is done.
//
// Gradients: a buffer holds the gradient of one output from the moment when the first reader of
// that output has computed it until backward has passed the layer. Where two layers read one
// output, their gradients are added.
#include <cstdint>
#include <vector>

#include "models/model.hpp"

namespace leeway {

struct PlanOptions {
  bool backward = true;
  /// Several micro-batches may be between forward and backward at once: the loss's gradient then
  /// stays with its micro-batch, and shares memory with no other gradient.
  bool several = false;
  /// Backward comes in halves: the gradients of outputs that the half for the weights reads then
  /// stay as they are until it is done.
  bool halves = false;
};

struct PassPlan {
  static constexpr int kNone = -1;

  /// Something that backward does, in gradient buffers.
  struct Op {
    enum class Kind : std::uint8_t {
      layer,  // the layer's backward, from buffer `from` to buffer `to`; kNone: nobody wants dx
      add,    // to += from
      copy,   // to = from
    };
    Kind kind{};
    int to = kNone;
    int from = kNone;
    std::int64_t floats = 0;  // a sample, for add and copy
  };

  /// Where a gradient buffer lies.
  enum class Place : std::uint8_t {
    working,  // in the pass: nobody wants it when the backward of a micro-batch is done
    kept,     // with the micro-batch's activations: written by the loss
    open,     // with the micro-batch, between the halves of its backward
    outside,  // in a blob that comes from the next part, and is not written, or that goes to the
              // part before
  };

  PassPlan(const Model& model, bool with_backward)
      : PassPlan(model, ModelChunk::whole(model), {.backward = with_backward}) {}
  PassPlan(const Model& model, ModelChunk part, PlanOptions options);

  ModelChunk part;
  std::vector<int> output;                    // per layer: its buffer; kNone: the input's memory
  std::vector<std::int64_t> output_floats;    // per buffer, a sample
  std::vector<std::vector<Op>> backward;      // per layer, in order
  std::vector<std::int64_t> gradient_floats;  // per gradient buffer, a sample
  std::vector<Place> gradient_place;          // likewise
  int output_gradient = kNone;         // buffer that the loss writes, or that the next part gives
  bool keeps_output_gradient = false;  // the half for the weights reads what the next part gave
  int input_gradient = kNone;          // what the part before is given; kNone: it wants none

  /// The buffer of `layer`'s output; of a layer before the part, and of views on it, kNone.
  int output_of(int layer) const {
    return layer < part.first ? kNone : output[static_cast<std::size_t>(layer)];
  }

  /// Whether the backward of some layer reads the output of the part.
  bool backward_reads_output(const Model& model) const;

 private:
  class Gradients;
  void place_outputs(const Model& model, bool with_backward);
  void place_gradients(const Model& model, PlanOptions options);
};

}  // namespace leeway
