#pragma once
// Pieces: the smallest chunks that a model can be split into, and their memory.
//
// A split is allowed where one tensor crosses it, so that a chunk has one input, one output and one
// gradient in each direction. In a chain that is true after every layer. Two tensors cross the
// inside of a residual block, its input and the output of its body, so a block is one piece.
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
  std::string name;  // "3": the index in the plan's list of layers
  std::string kind;  // "linear", "residual"; "layers" for several that cannot be split

  // Bytes of one micro-batch.
  std::int64_t output_bytes = 0;    // of the tensor that crosses a split after the piece
  std::int64_t kept_bytes = 0;      // from forward until backward, without the input; for the last
                                    // piece with the loss's gradient
  std::int64_t first_bytes = 0;     // kept in addition if the piece is the first of a stage, where
                                    // an in-place layer needs separate memory
  std::int64_t gradient_bytes = 0;  // gradients kept for a backward for weights: those of trained
                                    // layers whose backward splits
  std::int64_t working_bytes = 0;   // while a layer is computed: its gradients and its scratch
  // Bytes of parameters.
  std::int64_t weight_bytes = 0;     // trained; a borrowed table counts in both pieces that use it
  std::int64_t statistic_bytes = 0;  // not trained
};

/// All pieces in order; together they are all layers. `batch`: samples of a micro-batch. `on`
/// determines the scratch memory.
std::vector<ModelPiece> pieces_of(const Model& model, std::int64_t batch, Executor& on);

/// Whether exactly one tensor goes from the layers before `layer` to `layer` and later layers.
bool can_split_before(const Model& model, int layer);

/// For each layer, whether the gradient of its output is needed: a parameter at or before the layer
/// is trained.
std::vector<bool> wanted_gradients(const Model& model);

}  // namespace leeway
