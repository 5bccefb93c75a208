#pragma once
// Snapshots: this shard's blocks of a consistent snapshot, taken while training continues
// (docs/staleness.md).
//
// The scheduler proposes an iteration for each pipeline, which no lease of the pipeline reaches
// yet. A bucket is forked before it applies its first push beyond these iterations. Pushes below
// them that arrive afterwards are applied to both copies. When the clocks of all live workers have
// reached them, the forks hold exactly the pushes below them.
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "actors/channel.hpp"
#include "actors/shard/bucket_queues.hpp"
#include "actors/shard/clock_table.hpp"
#include "core/expected.hpp"
#include "messages/scheduler_shard.hpp"

namespace leeway {

class Snapshots {
 public:
  Snapshots(std::shared_ptr<const Job> job, ShardId shard, BucketQueues& buckets,
            const ClockTable& clocks, Channel& scheduler, Channel& monitor)
      : job_(std::move(job)),
        shard_(shard),
        buckets_(buckets),
        clocks_(clocks),
        scheduler_(scheduler),
        monitor_(monitor) {}

  /// Takes the present state at once if the order is immediate. Otherwise votes on the proposal,
  /// which replaces an earlier one. Error: the order does not fit the plan.
  Status handle(const msg::Snapshot& order, Outbox& out);
  /// The worker is admitted again: what it pushes from `iteration` on is not part of the pending
  /// snapshot.
  void admitted(WorkerId worker, Iteration iteration);
  /// An update by the push, and by others of the same iteration, is about to be queued: forks the
  /// bucket if the update is the first beyond the snapshot. True if the update belongs to the fork
  /// as well.
  bool fork_before(const Contribution& push);
  /// The shard takes the push: its encoding leaves the worker a residual, or it carries it in full.
  void accepted(const Contribution& push);
  /// A push is dropped, and the worker has its earlier residual again.
  void dropped(const Contribution& push);
  /// Takes the snapshot if all clocks have reached it.
  void collect_complete(Outbox& out);
  bool is_pending() const { return pending_.has_value(); }
  std::vector<msg::ShardState::Residual> save_residuals() const;
  void restore_residuals(const std::vector<msg::ShardState::Residual>& residuals);
  /// Sends the weights at the end of the run.
  void send_final(Outbox& out) { take({.state = {.final = true}, .evaluate = true}, false, out); }

 private:
  using Residuals = std::set<std::pair<WorkerId, std::uint32_t>>;  // by bucket
  struct Pending {
    msg::Snapshot order;
    std::vector<Iteration> ends;   // by pipeline: pushes below are part of the snapshot
    std::vector<WorkerId> behind;  // workers that had not reached their end when last looked at
    std::vector<bool> forked;      // by bucket
    Residuals residuals;           // after the pushes below the ends
  };
  /// A snapshot whose blocks are being collected from the buckets' queues.
  struct Collection {
    msg::SnapshotState state;
    bool evaluate = false;
    std::uint64_t checkpoint = 0;
    std::vector<WorkerId> residuals;  // of these workers, the checkpoint lacks them
    std::uint32_t missing = 0;        // buckets
    std::vector<BlockState> blocks;   // for the checkpoint
  };
  /// Of the push's bucket and worker.
  void note_residual(const Contribution& push, bool has_residual);
  static std::vector<WorkerId> workers_of(const Residuals& residuals);
  std::size_t pipeline_of(WorkerId worker) const { return job_->stages->pipeline_of(worker); }
  void drop_pending(Outbox& out);
  void take(Collection collection, bool of_forks, Outbox& out);
  void use(Collection& collection, Outbox& out);

  std::shared_ptr<const Job> job_;
  ShardId shard_;
  BucketQueues& buckets_;
  const ClockTable& clocks_;
  Channel& scheduler_;
  Channel& monitor_;
  std::optional<Pending> pending_;
  Residuals residuals_;  // that are not zero, as far as this shard knows
};

}  // namespace leeway
