#include "actors/scheduler/mailer.hpp"

#include <utility>

namespace leeway {

std::vector<Channel> channels_to_shards(const Job& job) {
  std::vector<Channel> channels;
  for (std::uint32_t shard = 0; shard < job.layout->shards(); ++shard)
    channels.emplace_back(address_of(ShardId(shard)));
  return channels;
}

Mailer::Mailer(const Job& job, const Roster& roster, std::vector<Channel>& shards)
    : stages_(job.stages), roster_(roster), shards_(shards) {
  for (std::uint32_t stage = 0; stage < stages_->count(); ++stage)
    stage_shard_pairs_ += stages_->share(stage).shards.size();
}

void Mailer::to_worker(WorkerId worker, Body body, Outbox& out) const {
  out.send(address_of(worker),
           encode({.session = roster_.member_of(worker).session, .body = std::move(body)}));
}

void Mailer::to_shards(const Body& body, Outbox& out) const {
  for (Channel& shard : shards_) shard.send(body, out);
}

void Mailer::to_lead_shard(const Body& body, Outbox& out) const {
  shards_.front().send(body, out);
}

void Mailer::to_shards_of(WorkerId worker, const Body& body, Outbox& out) const {
  for (const ShardId shard : stages_->share_of(worker).shards)
    shards_[shard.value()].send(body, out);
}

void Mailer::stop(WorkerId worker, Outbox& out) const {
  to_worker(worker, msg::Stop{roster_.stage_of(worker).nonce}, out);
}

void Mailer::refuse_evicted(WorkerId worker, Outbox& out) const {
  to_worker(worker, msg::Refused{msg::Refused::Reason::unknown_worker, "evicted", {}}, out);
}

}  // namespace leeway
