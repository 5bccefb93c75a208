#pragma once
// Pieces: where a model may be cut into stages, and what its layers take.
//
// A cut is allowed where one tensor crosses it: then a stage has one input, one output and one
// gradient each way. In a chain that is behind every layer. A residual block is crossed by its
// input as well as by what its body has made of it, so it is never cut inside: it is one piece.
#include <cstdint>
#include <string>
#include <vector>

#include "models/model.hpp"

namespace leeway {

inline constexpr std::int64_t kFloatBytes = sizeof(float);

/// Layers [first, end) of a model.
struct ModelPiece {
  int first = 0;
  int end = 0;
  std::string name;  // "3": the place in the plan's list of layers
  std::string kind;  // "linear", "residual"; "layers" of several that cannot be cut apart

  // Bytes of one micro-batch.
  std::int64_t output_bytes = 0;    // of the tensor that crosses a cut behind it
  std::int64_t kept_bytes = 0;      // from forward until backward, the input not included;
                                    // of the last piece also the loss's gradient
  std::int64_t first_bytes = 0;     // kept in addition when the piece is the first of a stage: a
                                    // layer in place needs memory of its own then
  std::int64_t gradient_bytes = 0;  // of outputs, kept for a backward for weights: those of
                                    // trained layers whose backward splits
  std::int64_t working_bytes = 0;   // while a layer is computed: its gradients and its scratch
  // Bytes of parameters.
  std::int64_t weight_bytes = 0;     // trained; a borrowed table counts where it is used, too
  std::int64_t statistic_bytes = 0;  // not trained
};

/// All pieces, in order: together all layers. `batch`: samples of a micro-batch; `on`: where they
/// are computed, for scratch.
std::vector<ModelPiece> pieces_of(const Model& model, std::int64_t batch, Executor& on);

/// Whether one tensor alone goes from layers before `layer` to `layer` and those behind it.
bool can_split_before(const Model& model, int layer);

/// Whether the gradient of a layer's output is wanted: something at or before it is trained. Of
/// Model::kBatch it is not.
std::vector<bool> wanted_gradients(const Model& model);

}  // namespace leeway
