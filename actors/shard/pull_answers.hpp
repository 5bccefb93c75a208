#pragma once
// PullAnswers: permitted pulls on their way through the queues.
//
// A pull captures the weights of each of its buckets behind the updates that the clocks had counted
// when the staleness rule permitted it. It is answered when the last bucket has been captured.
#include <memory>
#include <span>
#include <vector>

#include "actors/shard/bucket_queues.hpp"
#include "actors/shard/clock_table.hpp"

namespace leeway {

class PullAnswers {
 public:
  PullAnswers(BucketQueues& buckets, const ClockTable& clocks)
      : buckets_(buckets), clocks_(clocks) {}

  /// Captures the buckets for a worker that is admitted, and sends the answer if it is complete.
  void begin(WorkerId worker, Iteration iteration, std::span<const std::uint32_t> shard_buckets,
             Outbox& out);
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

  BucketQueues& buckets_;
  const ClockTable& clocks_;
  std::vector<std::shared_ptr<Answer>> complete_;
};

}  // namespace leeway
