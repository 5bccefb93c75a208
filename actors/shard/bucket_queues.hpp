#pragma once
// BucketQueues: the buckets of a shard, each with its queue and at most one update under way.
#include <memory>
#include <vector>

#include "actors/shard/parameter_bucket.hpp"

namespace leeway {

class BucketQueues {
 public:
  BucketQueues(const std::shared_ptr<const Job>& job, ShardId shard, FirstState first);

  std::uint32_t size() const { return static_cast<std::uint32_t>(buckets_.size()); }
  /// True when nothing is queued or under way.
  bool is_idle() const;
  /// True if no bucket has a fork, either.
  bool is_plain() const;
  /// All blocks. Requires is_plain().
  std::vector<msg::StoredBlock> save() const;
  void restore(const std::vector<msg::StoredBlock>& blocks);

  template <class Alternative>
  void enqueue(std::uint32_t bucket, Alternative item) {
    buckets_[bucket].parameters->enqueue(std::move(item));
  }
  /// Closes the worker's pulls up to this iteration, without an update. The caller then runs the
  /// bucket. Does nothing without a delay policy.
  void forget(std::uint32_t bucket, WorkerId worker, Iteration upto);
  /// Closes all pulls of the worker, in every bucket.
  void forget(WorkerId worker, Outbox& out);
  /// The most bytes of old weights that were kept at once for a delay policy.
  std::uint64_t most_kept_bytes() const { return most_kept_bytes_; }
  /// Runs a queue up to its next update and hands that to the host. Does nothing while an update of
  /// the bucket is under way.
  void run(std::uint32_t bucket, Outbox& out);

  /// The update that a MeasureWork has measured runs with this scale.
  void run_scaled(std::uint32_t bucket, float scale, Outbox& out);
  /// The host has computed a MeasureWork: its bucket, which waits for its scale.
  std::uint32_t measured(const Work& work);

  struct Finished {
    std::uint32_t bucket;
    AppliedUpdate applied;
  };
  /// The host has computed `work`. The caller then runs the bucket.
  Finished finish(const Work& work);

 private:
  struct Entry {
    std::unique_ptr<ParameterBucket> parameters;
    std::shared_ptr<Work> running;
    std::uint64_t kept_bytes = 0;
  };
  /// Updates the totals after a change of the bucket.
  void count_kept(Entry& entry);
  /// The bucket whose work the host has computed.
  std::uint32_t take(const Work& work);

  std::vector<Entry> buckets_;
  std::uint64_t kept_bytes_ = 0;
  std::uint64_t most_kept_bytes_ = 0;
};

}  // namespace leeway
