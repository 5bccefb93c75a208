#pragma once
// Updates: turns contributions into updates of buckets, or into acknowledgements.
#include "actors/shard/acknowledgements.hpp"
#include "actors/shard/bucket_queues.hpp"
#include "actors/shard/push_sink.hpp"
#include "actors/shard/round_norms.hpp"
#include "actors/shard/snapshots.hpp"

namespace leeway {

class Updates final : public PushSink {
 public:
  /// `norms` limits the norm of rounds; null: no limit.
  Updates(BucketQueues& buckets, Snapshots& snapshots, Acknowledgements& acknowledgements,
          RoundNorms* norms = nullptr)
      : buckets_(buckets),
        snapshots_(snapshots),
        acknowledgements_(acknowledgements),
        norms_(norms) {}

  void apply(std::vector<Contribution> contributions, Outbox& out) override;
  void end_round(Iteration round, Outbox& out) override;
  void drop(const Contribution& push, Outbox& out) override;
  void forget(const Contribution& push) override { acknowledgements_.forget(push); }

 private:
  BucketQueues& buckets_;
  Snapshots& snapshots_;
  Acknowledgements& acknowledgements_;
  RoundNorms* norms_;
};

}  // namespace leeway
