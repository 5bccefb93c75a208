#pragma once
// chunk_bytes: the memory of a model chunk, predicted from shapes.
#include <cstdint>

#include "models/chunk_pass.hpp"

namespace leeway {

/// Bytes, per micro-batch unless noted. A BlobPool rounds each blob up, by at most a quarter.
struct ChunkBytes {
  std::int64_t input = 0;            // the output of the previous chunk, or the samples
  std::int64_t activations = 0;      // saved from forward to backward, with the gradient of the
                                     // loss; 0 with recompute
  std::int64_t keys_and_labels = 0;  // sample keys, and labels or targets if they are copied
  std::int64_t pending = 0;          // gradients between the backwards for inputs and for weights
  std::int64_t sent = 0;             // the output for the next chunk; its gradient is as large
  // Per chunk, for any number of micro-batches:
  std::int64_t shared = 0;      // with recompute: the activations of the micro-batch in backward,
                                // and of each one that waits for its backward for weights
  std::int64_t weights = 0;     // one version; includes a borrowed table
  std::int64_t statistics = 0;  // not trained

  /// From forward until backward.
  std::int64_t kept() const { return input + activations + keys_and_labels; }
};

/// For micro-batches of `batch` samples, which is also the pass's max_batch. Assumes that samples
/// have keys, and that the first chunk gets its samples as a blob.
ChunkBytes chunk_bytes(const Model& model, ModelChunk chunk, std::int64_t batch,
                       const ChunkOptions& options);

/// ChunkBytes::keys_and_labels. `last`: the chunk is the last one. `copied`: labels or targets are
/// copied, as on a GPU or with recompute.
std::int64_t key_and_label_bytes(const Model& model, bool last, std::int64_t batch, bool copied);

/// The bytes of a chunk's output, if only the next chunk reads it. 0 if a backward of this chunk
/// reads it, if the output is the input, and for the last chunk.
std::int64_t unread_bytes(const Model& model, ModelChunk chunk, std::int64_t batch);

}  // namespace leeway
