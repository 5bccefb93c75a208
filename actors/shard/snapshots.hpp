#pragma once
// Snapshots: this shard's blocks of a consistent snapshot, taken while training continues
// (docs/staleness.md).
//
// The scheduler proposes an iteration that no lease reaches yet. A bucket is forked before it
// applies its first push of that iteration or of a later one. Pushes of earlier iterations that
// arrive afterwards are applied to both copies. When min_clock reaches the iteration, the forks
// hold exactly the pushes below it.
#include <optional>
#include <vector>

#include "actors/shard/bucket_queues.hpp"
#include "actors/shard/clock_table.hpp"
#include "messages/scheduler_shard.hpp"

namespace leeway {

class Snapshots {
 public:
  Snapshots(BucketQueues& buckets, const ClockTable& clocks) : buckets_(buckets), clocks_(clocks) {}

  /// Sends the present weights to the monitor if the order is immediate. Otherwise votes on the
  /// proposal, which replaces an earlier one.
  void handle(const msg::Snapshot& order, Outbox& out);
  /// An update of the bucket by pushes of the iteration is about to be queued: forks the bucket if
  /// the update is the first beyond the snapshot. True if the update belongs to the fork as well.
  bool fork_before(std::uint32_t bucket, Iteration iteration);
  /// Sends the snapshot if min_clock has reached it.
  void collect_complete(Outbox& out);
  /// Sends the weights at the end of the run.
  void send_final(Outbox& out) { send({.final = true}, false, out); }

 private:
  struct Pending {
    std::uint64_t id = 0;
    Iteration iteration;
    std::vector<bool> forked;  // by bucket
  };
  void drop_pending(Outbox& out);
  void send(msg::SnapshotState state, bool of_forks, Outbox& out);

  BucketQueues& buckets_;
  const ClockTable& clocks_;
  std::optional<Pending> pending_;
};

}  // namespace leeway
