#pragma once
// GatheredBatch: a micro-batch as read from the data set.
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "actors/job.hpp"
#include "kernels/executor.hpp"
#include "models/stash.hpp"

namespace leeway {

/// Host memory of one micro-batch. The returned batches point into it.
class GatheredBatch {
 public:
  /// For at most `samples` samples.
  GatheredBatch(std::shared_ptr<Executor> on, std::int64_t samples)
      : on_(std::move(on)), samples_(samples) {}

  /// Reads samples with the augmentation of this epoch, keys, and labels or targets.
  Batch gather(const Job& job, Epoch epoch, std::span<const std::int64_t> samples);
  /// Only keys, for a chunk that does not compute the loss.
  Batch gather_keys(const Job& job, Epoch epoch, std::span<const std::int64_t> samples);
  /// Keys, and labels or targets, for the last chunk.
  Batch gather_labels(const Job& job, Epoch epoch, std::span<const std::int64_t> samples);
  std::int64_t bytes() const {
    return static_cast<std::int64_t>(x_.size() + targets_.size() + labels_.size() + keys_.size());
  }

 private:
  /// Memory for `of_each` T per sample, allocated on the first call.
  template <class T>
  T* array(Blob& blob, std::int64_t of_each);
  std::int32_t* labels(const Job& job);
  float* targets(const Job& job);

  std::shared_ptr<Executor> on_;
  std::int64_t samples_;
  Blob x_;        // (samples, input)
  Blob targets_;  // (samples, target_count)
  Blob labels_;   // (samples, label_count), int32
  Blob keys_;     // (samples), uint64
};

/// The samples only, for the first chunk: host memory of `on`, (samples, input). `keys`: one per
/// sample, for its augmentation.
Blob gather_samples(const Job& job, Executor& on, std::span<const std::int64_t> samples,
                    std::span<const std::uint64_t> keys);

/// Bytes of a GatheredBatch without samples: keys, and for the last chunk labels or targets.
std::int64_t gathered_bytes(const Model& model, bool last, std::int64_t samples);

}  // namespace leeway
