#pragma once
// Placement: which stage has which chunk of the model.
//
// A model is split into stages * chunks model chunks, which a micro-batch passes in order. With one
// chunk per stage, model chunk s is on stage s. With several, there are two shapes:
//
//   round robin  The model runs through all stages several times: chunk c of stage s is model chunk
//                c * stages + s. The last stage sends to the first.
//   V            The model runs back and forth: with two chunks, stage s has the model chunks s and
//                2 * stages - 1 - s. The last stage passes activations on to itself, and the first
//                stage has both the data and the loss.
//
// Source of the V: Qi et al., "Zero Bubble Pipeline Parallelism", arXiv 2401.10241, 2023, and
// "Pipeline Parallelism with Controllable Memory", NeurIPS 2024, section 3.
#include <cstdint>

namespace leeway::pipeline {

struct Placement {
  enum class Shape : std::uint8_t { round_robin, v };
  Shape shape = Shape::round_robin;
  int stages = 1;

  /// Whether this chunk of each stage reads activations of the next stage and sends to the previous
  /// one. Its gradients take the other way.
  constexpr bool runs_back(int chunk) const { return shape == Shape::v && chunk % 2 == 1; }

  constexpr int model_chunk(int stage, int chunk) const {
    return chunk * stages + (runs_back(chunk) ? stages - 1 - stage : stage);
  }
  constexpr int chunk_of(int model_chunk) const { return model_chunk / stages; }
  constexpr int stage_of(int model_chunk) const {
    const int along = model_chunk % stages;
    return runs_back(chunk_of(model_chunk)) ? stages - 1 - along : along;
  }
  /// The link that an activation takes from this model chunk to the next: link s is between stage s
  /// and the next stage, that of the last stage leads to the first.
  constexpr int link_after(int model_chunk) const {
    return stage_of(runs_back(chunk_of(model_chunk)) ? model_chunk + 1 : model_chunk);
  }
  /// Whether this model chunk and the next are on one stage, so that no message is sent.
  constexpr bool stays(int model_chunk) const {
    return stage_of(model_chunk) == stage_of(model_chunk + 1);
  }
  bool operator==(const Placement&) const = default;
};

}  // namespace leeway::pipeline
