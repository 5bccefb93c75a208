#pragma once
// SnapshotChecker: property 5, a snapshot is the sum of all pushes below its iterations, and the
// final weights are the sum of all pushes.
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "actors/job.hpp"
#include "sim/checkers/checkpoints.hpp"
#include "sim/checkers/order_numbers.hpp"
#include "sim/checkers/tied_gradients.hpp"

namespace leeway::sim {

/// Counts the updates of each block. For plain SGD at a constant rate it also sums the gradients.
/// The immediate snapshots of asp are not checked. The snapshot of a checkpoint is compared with
/// the written tensors.
class SnapshotChecker final : public Checker {
 public:
  /// Without `checkpoints`, they are not compared.
  explicit SnapshotChecker(std::shared_ptr<const Job> job,
                           std::shared_ptr<const CheckpointChecker> checkpoints = nullptr);
  void on_event(Instant, Address actor, const Event& event) override;
  void on_delivered(Instant, const Letter& letter) override;

 private:
  using WorkerBucket = std::uint32_t;  // index among the worker's buckets at a shard
  using ShardBucket = std::uint32_t;   // index among the shard's buckets
  struct Weights {
    std::vector<double> values;
    double largest = 0;  // magnitude that any value has had; the shard rounds to its precision
  };
  struct State {
    std::map<ShardBucket, std::int64_t> updates;    // since the run began or was resumed
    std::map<ShardBucket, Iteration> latest_round;  // by rounds: the last one counted
    std::map<BlockId, Weights> weights;             // empty: only counted
  };
  struct Live {
    Session session;
    Iteration beyond;  // largest that was applied, plus one
  };
  struct Fork {
    State state;
    std::vector<Iteration> ends;          // by pipeline
    std::map<WorkerId, Live> live;        // when it was proposed
    std::map<WorkerId, Live> readmitted;  // their pushes from `beyond` on are not part of it
  };
  struct Shard {
    State live;
    TiedGradients tied;
    std::map<std::uint64_t, Fork> forks;  // by snapshot
    std::map<std::uint64_t, Fork> saved;  // by checkpoint: the present one
    std::set<std::uint64_t> immediate;    // snapshots
    std::map<WorkerId, Live> live_workers;
    /// Pushes that have arrived and are not applied, by worker, bucket, session and iteration.
    std::map<std::tuple<WorkerId, WorkerBucket, Session, Iteration>, msg::Push> pushed;
    std::map<Iteration, double> scales;  // of the weights of the pushes of a closed round
    /// Pushes of overflows that have arrived, by iteration and bucket of the shard: their workers,
    /// without those that were fenced since.
    std::map<std::pair<Iteration, ShardBucket>, std::set<WorkerId>> overflows;
  };
  Shard& at(Address address);
  std::size_t pipeline_of(WorkerId worker) const { return job_->stages->pipeline_of(worker); }
  bool belongs(const event::BucketApplied& event, const Fork& fork) const;
  void on_order(Address address, const Letter& letter);
  static void follow(TiedGradients& tied, const Event& event);
  void compare_checkpoint(std::uint64_t number);
  void count_applied(Address actor, const event::BucketApplied& event);
  /// An update is skipped if and only if one of its pushes has overflowed.
  void check_skipped(Address actor, Shard& shard, const event::BucketApplied& event,
                     ShardBucket bucket, const msg::Push& push) const;
  State initial(ShardId shard) const;
  /// Null if the worker has no such bucket at the shard.
  const std::uint32_t* shard_bucket_of(Address shard, WorkerId worker, WorkerBucket bucket) const;
  /// `begins_update`: the push is not part of an update that was counted before. `scale`: factor of
  /// its weight.
  void add(State& state, ShardBucket bucket, const msg::Push& push, bool begins_update,
           double scale) const;
  void compare(Address address, const State& expected, const msg::SnapshotState& found) const;
  void compare_weights(Address address, const Block& block, const Weights& expected,
                       std::int64_t updates, const msg::BlockData& found) const;

  std::shared_ptr<const Job> job_;
  OrderNumbers orders_;
  std::shared_ptr<const CheckpointChecker> checkpoints_;
  bool piped_;
  bool adds_;  // sums gradients, not only counts updates
  std::map<Address, Shard> shards_;
};

}  // namespace leeway::sim
