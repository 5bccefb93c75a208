#pragma once
// Table: what each stage of a pipeline does, operation by operation, in order.
//
// A model is cut into stages * chunks parts. Part p = chunk * stages + stage is chunk `chunk` of
// stage `stage`: without chunks part p is stage p, with them the model runs through all stages
// several times. A forward of part p reads the activation that part p - 1 sent (part 0: the batch)
// and sends its own to part p + 1; a backward reads the gradient that part p + 1 sent (the last
// part: the loss) and sends its own to part p - 1. A full backward does both halves at once: the
// gradient for the inputs, which is what the part before waits for, and those for the weights.
//
// Versions count a part's updates: version 0 are the weights that the table starts from, update k
// (from 0) turns version k into version k + 1 by the gradients of micro-batches
// [k * micro_batches, (k + 1) * micro_batches). Every number is from 0.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leeway::pipeline {

enum class OpKind : std::uint8_t {
  forward,           // F
  backward_input,    // I: sends the gradient for the inputs
  backward_weights,  // W: after its I; frees the activation
  backward,          // B: I and W in one
  update,            // U
};

struct Op {
  OpKind kind{};
  int micro_batch = 0;  // of an update: the last one that it covers
  int chunk = 0;
  int version = 0;  // of the weights that it reads; of an update: that it makes
  bool operator==(const Op&) const = default;
};

constexpr bool is_backward(OpKind kind) {
  return kind == OpKind::backward || kind == OpKind::backward_input ||
         kind == OpKind::backward_weights;
}
/// Whether it sends a gradient to the part before.
constexpr bool gives_input_gradient(OpKind kind) {
  return kind == OpKind::backward || kind == OpKind::backward_input;
}
/// Whether it adds to the gradients of the weights, and is the last to read the activation.
constexpr bool gives_weight_gradient(OpKind kind) {
  return kind == OpKind::backward || kind == OpKind::backward_weights;
}

struct Table {
  int stages = 1;
  int chunks = 1;
  int micro_batches = 1;  // of one update
  int updates = 1;
  /// Per stage, what the schedule promises: an update's gradients were computed on weights that are
  /// older by so many updates at most. 0: as if the whole batch had been one.
  std::vector<int> version_lag;
  std::vector<std::vector<Op>> ops;  // per stage

  int parts() const { return stages * chunks; }
  int part_of(int stage, int chunk) const { return chunk * stages + stage; }
  int stage_of(int part) const { return part % stages; }
  int all_micro_batches() const { return micro_batches * updates; }
};

/// F, I, W, B or U.
char letter_of(OpKind kind);
/// "forward", "backward for the inputs", ...
std::string_view name_of(OpKind kind);
/// "F3"; in a table with several chunks "F3b" for chunk 1; an update of micro-batch 3 is "U3".
std::string text_of(const Op& op, int chunks);

}  // namespace leeway::pipeline
