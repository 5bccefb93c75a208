#pragma once
// UpdateWork: one update of all blocks of a bucket, by the mean gradient over pipelines.
#include <memory>
#include <vector>

#include "actors/job.hpp"
#include "actors/outbox.hpp"
#include "actors/shard/block_state.hpp"
#include "actors/shard/contribution.hpp"
#include "actors/shard/pulled_versions.hpp"

namespace leeway {

/// The contributions that an update has applied. `version_lags`: for each, the number of versions
/// between the weights that the gradient was computed on and those that it was applied to, as the
/// maximum over the bucket's blocks.
struct AppliedUpdate {
  std::vector<Contribution> contributions;
  std::vector<std::int64_t> version_lags;
};

/// Each part of the work updates one block.
class UpdateWork final : public Work {
 public:
  /// Updates `live`, and `shadow` unless it is null. The contributions are in ascending order of
  /// their workers, and none is empty. `open_pulls`: by block, or empty without a delay policy.
  UpdateWork(std::shared_ptr<const Job> job, std::shared_ptr<Executor> on,
             std::vector<BlockState>* live, std::vector<BlockState>* shadow,
             std::vector<PulledVersions>* open_pulls, std::vector<Contribution> contributions);

  int parts() const override { return static_cast<int>(live_->size()); }
  Cost cost(int part) const override;
  void run(int part) override;

  // Under a limit of the round's norm, measure() comes before run(), for each part.
  Cost measuring_cost(int part) const;
  /// Computes the mean gradient of a block, and keeps it for run().
  void measure(int part);
  Iteration round() const { return contributions_.front().iteration; }
  /// After measure(): the sum of the squares of the gradients. Statistics have none.
  double squares() const { return squares_; }
  /// Sets the factor of the gradients in run(). Until then, the factor of the push holds.
  void set_scale(float scale) { scale_ = scale; }

  AppliedUpdate release() { return {std::move(contributions_), std::move(lags_)}; }

 private:
  /// The contributions of the stages of one pipeline: gradients of the same samples.
  struct Share {
    WorkerId lead;
    std::size_t begin, end;  // of contributions_
    std::int64_t samples;
  };
  /// The weights that a gradient was computed on.
  struct Pulled {
    double lag = 0;  // rounds since then
    Blob weights;    // null: not kept
  };
  /// Floats of a block that get new weights after the update.
  struct Assignment {
    std::int64_t offset = 0, count = 0;
    Blob from;  // a block with the new weights
  };
  /// Takes the assigned slices of a block out of the gradients.
  std::vector<Assignment> take_assigned(std::size_t index);
  void assign(BlockState& state, const std::vector<Assignment>& assigned) const;
  /// Whether a contribution has a gradient of the block besides new weights.
  bool has_gradients(std::size_t index) const;
  /// The number of a block's first slice in the bucket.
  std::size_t first_slice(std::size_t index) const;
  Blob sum(const Share& share, std::size_t index) const;
  Blob mean_gradient(std::size_t index) const;
  /// A decoded gradient, on this bucket's executor.
  Blob values_of(const Contribution& contribution, std::size_t index) const;
  bool is_one_push(const Share& share) const {
    return share.end - share.begin == 1 && portion_ == 1;
  }
  void add(Blob& to, const Blob& gradient, float scale, bool first, std::size_t index) const;
  /// The same for an encoded gradient, without decoding it apart.
  void add(Blob& to, const Contribution& contribution, float scale, bool first,
           std::size_t index) const;
  /// The cost of reading or writing this number of arrays of a block's size.
  Cost cost_of(int part, std::int64_t arrays) const;
  void count(BlockState& state, double weight) const;
  /// The oldest weights of the contributions, whose pulls are then closed. Without rounds, an
  /// update has one push, or those of the stages that share a block.
  Pulled take_pulled(std::size_t index);
  /// Factor of a share in the mean over the shares.
  float scale_of(const Share& share) const;
  /// 1, or the mean number of local steps of a push.
  double steps_per_push() const;
  void apply(BlockState& state, const float* gradient, const Pulled& pulled) const;

  std::shared_ptr<const Job> job_;
  std::shared_ptr<Executor> on_;
  std::vector<BlockState>* live_;
  std::vector<BlockState>* shadow_;
  std::vector<PulledVersions>* open_pulls_;  // by block; empty without a delay policy
  std::vector<Contribution> contributions_;
  std::vector<Share> shares_;
  std::vector<std::int64_t> lags_;
  std::int64_t samples_ = 0;  // of all pipelines
  std::int64_t counted_ = 0;  // of these, the samples that count as trained
  double portion_ = 1;        // of a single pipeline: owners that have pushed / all owners
  double weight_ = 0;
  std::vector<std::vector<Assignment>> assigned_;  // by part
  std::vector<Blob> measured_;                     // by part: mean gradients
  double squares_ = 0;
  float scale_ = 1;
};

}  // namespace leeway
