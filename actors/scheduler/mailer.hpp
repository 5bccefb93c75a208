#pragma once
// Mailer: addresses the scheduler's messages to workers, under their present sessions, and to
// shards.
#include <memory>
#include <vector>

#include "actors/channel.hpp"
#include "actors/job.hpp"
#include "actors/outbox.hpp"
#include "actors/scheduler/roster.hpp"
#include "messages/envelope.hpp"

namespace leeway {

std::vector<Channel> channels_to_shards(const Job& job);

class Mailer {
 public:
  /// `shards`: the channels to all shards.
  Mailer(const Job& job, const Roster& roster, std::vector<Channel>& shards);

  void to_worker(WorkerId worker, Body body, Outbox& out) const;
  void to_shards(const Body& body, Outbox& out) const;
  /// To shard 0, which proposes to close rounds.
  void to_lead_shard(const Body& body, Outbox& out) const;
  /// To the shards that have parameters of the worker's stage.
  void to_shards_of(WorkerId worker, const Body& body, Outbox& out) const;
  /// For each stage of a member, body_of(worker) to the shards that have parameters of it.
  template <class BodyOf>
  void for_each_stage(WorkerId lead, BodyOf body_of, Outbox& out) const {
    for (const WorkerId worker : roster_.workers_of(lead))
      to_shards_of(worker, body_of(worker), out);
  }
  /// Messages that for_each_stage() sends: one for each pair of a stage and a shard with parameters
  /// of it.
  std::size_t stage_shard_pairs() const { return stage_shard_pairs_; }
  /// Sends a worker Stop.
  void stop(WorkerId worker, Outbox& out) const;
  /// Sends a worker the refusal that its session is over, so that it joins again.
  void refuse_evicted(WorkerId worker, Outbox& out) const;

 private:
  std::shared_ptr<const Stages> stages_;
  const Roster& roster_;
  std::vector<Channel>& shards_;
  std::size_t stage_shard_pairs_ = 0;
};

}  // namespace leeway
