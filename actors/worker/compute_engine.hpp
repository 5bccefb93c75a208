#pragma once
// ComputeEngine: the passes and the gradient sums of a participant's chunks of the model, on its
// device.
#include <cstdint>
#include <memory>
#include <vector>

#include "actors/job.hpp"
#include "actors/micro_batch.hpp"
#include "actors/worker/device_weights.hpp"
#include "actors/worker/lease_queue.hpp"
#include "models/chunk_pass.hpp"
#include "models/gradient_sum.hpp"

namespace leeway {

/// A micro-batch in one chunk, from its forward until its backward is done.
struct MicroBatch {
  Epoch epoch;
  std::vector<std::int64_t> samples;
  std::shared_ptr<DeviceWeights> weights;  // backward reads the same as forward
  Iteration pulled;                        // the pull that brought these weights
  float loss_scale = 1;                    // see Batch
  Stash* stash = nullptr;
  std::unique_ptr<GatheredBatch> gathered;
  /// The most bytes held during its latest operation: its own, those of its weights, and the
  /// participant's gradients. Excludes the working memory of the operation.
  std::int64_t held = 0;

  std::int64_t size() const { return static_cast<std::int64_t>(samples.size()); }
  /// The bytes held now, without weights. Requires that no work runs.
  std::int64_t bytes() const;
};

/// Micro-batch `index` of an iteration's `count`. Requires that it has samples.
std::shared_ptr<MicroBatch> make_micro_batch(const Job& job, const LeasedIteration& leased,
                                             std::int64_t index, std::int64_t count,
                                             std::shared_ptr<DeviceWeights> weights,
                                             Iteration pulled);

/// The most samples of an iteration that one worker computes at once: in a host group its share.
std::int64_t largest_share(const Job& job);

/// Its works run one at a time, and keep it alive.
class ComputeEngine {
 public:
  ComputeEngine(std::shared_ptr<const Job> job, WorkerId worker);
  ~ComputeEngine();

  Executor& executor() const { return *on_; }
  /// Keeps weights that the participant no longer needs until no work can read them.
  void keep(std::shared_ptr<DeviceWeights> weights) { kept_.push_back(std::move(weights)); }

 private:
  friend class ComputeWork;
  struct Chunk {
    ChunkPass pass;
    GradientSum sum;
  };
  Chunk& chunk(int index) { return *chunks_[static_cast<std::size_t>(index)]; }
  /// The bytes of the iteration's sum and of one micro-batch's gradients.
  std::int64_t gradient_bytes() const;

  std::shared_ptr<const Job> job_;
  std::shared_ptr<Executor> on_;
  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::vector<std::shared_ptr<DeviceWeights>> kept_;
};

}  // namespace leeway
