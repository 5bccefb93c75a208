#pragma once
// PullAnswers: permitted pulls on their way through the queues.
//
// A pull captures the weights of each of its buckets behind the updates that the clocks had counted
// when the staleness rule permitted it. It is answered when the last bucket has been captured.
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "actors/shard/bucket_queues.hpp"
#include "actors/shard/clock_table.hpp"
#include "messages/monitor.hpp"

namespace leeway {

class PullAnswers {
 public:
  /// Counts the bytes of its answers in `report`.
  PullAnswers(std::shared_ptr<const Job> job, BucketQueues& buckets, const ClockTable& clocks,
              msg::ShardReport& report)
      : job_(std::move(job)), buckets_(buckets), clocks_(clocks), report_(report) {}

  /// Captures the buckets for a worker that is admitted, and sends the answer if it is complete.
  /// `loss_scale`: of the iteration; 0: none.
  void begin(WorkerId worker, const msg::Pull& pull, float loss_scale,
             std::span<const std::uint32_t> shard_buckets, Outbox& out);
  /// Sends the complete answers, except to evicted sessions.
  void send_complete(Outbox& out);
  bool is_idle() const { return complete_.empty(); }

 private:
  struct Answer {
    WorkerId worker;
    Session session;
    msg::Weights weights;
    std::size_t missing = 0;  // buckets that are not captured yet
  };

  /// A version of a block's weights, predicted and encoded.
  struct Prepared {
    Version version;
    Blob bytes;
  };

  /// The weights as the answer to this worker has them. Each version is prepared once.
  msg::BlockData prepared(const BlockState& state, WorkerId worker);

  std::shared_ptr<const Job> job_;
  BucketQueues& buckets_;
  const ClockTable& clocks_;
  msg::ShardReport& report_;
  std::map<std::pair<BlockId, std::int64_t>, Prepared> prepared_;  // by lag; the latest
  std::vector<std::shared_ptr<Answer>> complete_;
};

}  // namespace leeway
