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

/// Host memory that a micro-batch is gathered into.
class GatheredBatch {
 public:
  /// For up to `samples` samples.
  GatheredBatch(std::shared_ptr<Executor> on, std::int64_t samples)
      : on_(std::move(on)), samples_(samples) {}

  /// Reads the samples and what is to be said of them, with the augmentation that each has in this
  /// epoch. Gives a batch that points into this memory.
  Batch gather(const Job& job, Epoch epoch, std::span<const std::int64_t> samples);
  /// The keys alone, for who reads no samples.
  Batch gather_keys(const Job& job, Epoch epoch, std::span<const std::int64_t> samples);
  std::int64_t bytes() const {
    return static_cast<std::int64_t>(x_.size() + targets_.size() + labels_.size() + keys_.size());
  }

 private:
  /// Memory for so many T of each sample, taken when it is first asked for.
  template <class T>
  T* array(Blob& blob, std::int64_t of_each);

  std::shared_ptr<Executor> on_;
  std::int64_t samples_;
  Blob x_;        // (samples, input)
  Blob targets_;  // (samples, target_count)
  Blob labels_;   // (samples, label_count), int32
  Blob keys_;     // (samples), uint64
};

}  // namespace leeway
