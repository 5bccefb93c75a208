#pragma once
// GatheredBatch: a micro-batch as it is read from the data.
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "actors/job.hpp"
#include "kernels/executor.hpp"
#include "models/part_pass.hpp"

namespace leeway {

/// Host memory that a micro-batch is gathered into. The batches that it gives point there.
class GatheredBatch {
 public:
  /// For up to `samples` samples.
  GatheredBatch(std::shared_ptr<Executor> on, std::int64_t samples)
      : on_(std::move(on)), samples_(samples) {}

  /// Reads the samples and what is to be said of them, with the augmentation that each has in this
  /// epoch.
  Batch gather(const Job& job, Epoch epoch, std::span<const std::int64_t> samples);
  /// The keys alone, for a part of the model that does not compute the loss.
  Batch gather_keys(const Job& job, Epoch epoch, std::span<const std::int64_t> samples);
  /// Keys, and labels or targets, for the last part.
  Batch gather_labels(const Job& job, Epoch epoch, std::span<const std::int64_t> samples);
  std::int64_t bytes() const {
    return static_cast<std::int64_t>(x_.size() + targets_.size() + labels_.size() + keys_.size());
  }

 private:
  /// Memory for so many T of each sample, taken when it is first asked for.
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

/// The samples alone, for the first part: host memory of `on`, (samples, input). `keys`: one of
/// each, by which it is augmented.
Blob gather_samples(const Job& job, Executor& on, std::span<const std::int64_t> samples,
                    std::span<const std::uint64_t> keys);

/// What a GatheredBatch of so many samples holds for a part of the model: keys, and for the last
/// one labels or targets.
std::int64_t gathered_bytes(const Model& model, bool last, std::int64_t samples);

}  // namespace leeway
