#pragma once
// PassPlan: which memory each layer's output takes, and each gradient. Decided once for a model.
//
// Outputs: an in-place layer overwrites its input, unless that is the batch, or somebody else still
// reads it. With backward every other output has a buffer of its own; without, buffers are reused
// as soon as the last reader is done.
//
// Gradients: a buffer holds the gradient of one output from the moment when the first reader of
// that output has computed it until backward has passed the layer. Where two layers read one
// output, their gradients are added.
#include <cstdint>
#include <vector>

#include "models/model.hpp"

namespace leeway {

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

  PassPlan(const Model& model, bool backward);

  std::vector<int> output;                    // per layer: its buffer; kNone: the batch's memory
  std::vector<std::int64_t> output_floats;    // per buffer, a sample
  std::vector<std::vector<Op>> backward;      // per layer, in order
  std::vector<std::int64_t> gradient_floats;  // per gradient buffer, a sample
  int loss_gradient = kNone;                  // buffer that the loss writes

 private:
  class Gradients;
  void place_outputs(const Model& model, bool with_backward);
  void place_gradients(const Model& model);
};

}  // namespace leeway
