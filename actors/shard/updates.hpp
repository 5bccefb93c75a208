#pragma once
// Updates: turns contributions into updates of buckets, or into acknowledgements.
#include "actors/shard/acknowledgements.hpp"
#include "actors/shard/bucket_queues.hpp"
#include "actors/shard/loss_scale.hpp"
#include "actors/shard/push_sink.hpp"
#include "actors/shard/round_norms.hpp"
#include "actors/shard/snapshots.hpp"

namespace leeway {

class Updates final : public PushSink {
 public:
  /// `norms` limits the norm of rounds; null: no limit. `loss_scale`: null if no gradient
  /// overflows.
  Updates(BucketQueues& buckets, Snapshots& snapshots, Acknowledgements& acknowledgements,
          RoundNorms* norms = nullptr, LossScale* loss_scale = nullptr)
      : buckets_(buckets),
        snapshots_(snapshots),
        acknowledgements_(acknowledgements),
        norms_(norms),
        loss_scale_(loss_scale) {}

  void apply(std::vector<Contribution> contributions, Outbox& out) override;
  void end_round(Iteration round, Outbox& out) override;
  void drop(const Contribution& push, Outbox& out) override;
  void forget(const Contribution& push) override { acknowledgements_.forget(push); }

 private:
  /// Whether a gradient of the update has overflowed, so that the update is skipped as a whole.
  /// Counts the overflows.
  bool skips(const std::vector<Contribution>& contributions);

  BucketQueues& buckets_;
  Snapshots& snapshots_;
  Acknowledgements& acknowledgements_;
  RoundNorms* norms_;
  LossScale* loss_scale_;
};

}  // namespace leeway
