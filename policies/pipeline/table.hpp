#pragma once
// Table: the operations of each stage of a pipeline, in order.
//
// A model is split into stages * chunks model chunks, and its Placement gives each stage `chunks`
// of them. A forward of model chunk c reads the activation of c - 1 (the first: the batch) and
// sends its own to c + 1. A backward reads the gradient of c + 1 (the last: the loss) and sends its
// own to c - 1. A full backward does both at once: the backward for inputs, which c - 1 waits for,
// and the backward for weights.
//
// Versions count the updates of a chunk. The table starts from version 0. Update k turns version k
// into version k + 1, with the gradients of micro-batches
// [k * micro_batches, (k + 1) * micro_batches). All numbers start at 0.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policies/pipeline/placement.hpp"

namespace leeway::pipeline {

enum class OpKind : std::uint8_t {
  forward,           // F
  backward_input,    // I: backward for inputs
  backward_weights,  // W: backward for weights, after its I; frees the activation
  backward,          // B: I and W together
  update,            // U
};

struct Op {
  OpKind kind{};
  int micro_batch = 0;  // update: the last one that it covers
  int chunk = 0;        // of the stage
  int version = 0;      // of the weights that it reads; update: that it makes
  bool operator==(const Op&) const = default;
};

/// Whether it sends a gradient to the previous model chunk.
constexpr bool gives_input_gradient(OpKind kind) {
  return kind == OpKind::backward || kind == OpKind::backward_input;
}
/// Whether it computes gradients of the weights, and is the last to read the activation.
constexpr bool gives_weight_gradient(OpKind kind) {
  return kind == OpKind::backward || kind == OpKind::backward_weights;
}

struct Table {
  int stages = 1;
  int chunks = 1;
  int micro_batches = 1;  // of one update
  int updates = 1;
  Placement::Shape shape = Placement::Shape::round_robin;
  /// Per stage: the gradients of an update were computed on weights that are older by at most this
  /// many updates. 0: as if the whole batch were one micro-batch.
  std::vector<int> version_lag;
  std::vector<std::vector<Op>> ops;  // per stage

  int model_chunks() const { return stages * chunks; }
  Placement placement() const { return {shape, stages}; }
  int model_chunk(int stage, int chunk) const { return placement().model_chunk(stage, chunk); }
  int stage_of(int model_chunk) const { return placement().stage_of(model_chunk); }
  int all_micro_batches() const { return micro_batches * updates; }
};

/// F, I, W, B or U.
char letter_of(OpKind kind);
/// "forward", "backward for inputs", ...
std::string_view name_of(OpKind kind);
/// "F3"; in a table with several chunks "F3b" for chunk 1; an update after micro-batch 3 is "U3".
std::string text_of(const Op& op, int chunks);

}  // namespace leeway::pipeline
