#pragma once
// chunk_bytes: what a part of a model keeps, predicted from shapes.
#include <cstdint>

#include "models/part_pass.hpp"

namespace leeway {

/// Bytes; of one micro-batch where nothing else is said. What a BlobPool takes for them is rounded
/// up, by a fifth at most.
struct ChunkBytes {
  std::int64_t input = 0;        // what the part before has sent, or the samples
  std::int64_t activations = 0;  // what layers leave from forward until backward, and the gradient
                                 // of the loss; with recompute in backward alone
  std::int64_t told = 0;         // sample keys, and labels or targets where they are copied
  std::int64_t open = 0;         // in addition between the halves of a backward
  std::int64_t sent = 0;         // to the next part, and its gradient back
  // Of the whole part, however many micro-batches there are:
  std::int64_t shared = 0;      // with recompute: the activations of whichever is computed, and of
                                // each whose backward is half done
  std::int64_t weights = 0;     // of one version; a borrowed table counts
  std::int64_t statistics = 0;  // not trained

  /// From forward until backward.
  std::int64_t kept() const { return input + activations + told; }
};

/// For micro-batches of `batch` samples with sample keys, which is also the pass's max_batch, and
/// samples that the first part gets as a blob.
ChunkBytes chunk_bytes(const Model& model, ModelChunk part, std::int64_t batch,
                       const PartOptions& options);

/// ChunkBytes::told of a part that is the last one, or is not. `copied`: labels or targets are, as
/// on a GPU or to compute forward again.
std::int64_t told_bytes(const Model& model, bool last, std::int64_t batch, bool copied);

/// The output of a part that is not the last one, where it does not stay: the next part has it, and
/// no backward of this one reads it. 0 where one does, and where the output is the input.
std::int64_t unread_bytes(const Model& model, ModelChunk part, std::int64_t batch);

}  // namespace leeway
