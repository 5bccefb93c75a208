#include "actors/scheduler/mailer.hpp"

#include <utility>

namespace leeway {

Mailer::Mailer(const Job& job, const Roster& roster)
    : stages_(job.stages), layout_(job.layout), roster_(roster) {
  for (std::uint32_t stage = 0; stage < stages_->count(); ++stage)
    stage_shard_pairs_ += stages_->share(stage).shards.size();
}

void Mailer::to_worker(WorkerId worker, Body body, Outbox& out) const {
  out.send(address_of(worker),
           encode({.session = roster_.member_of(worker).session, .body = std::move(body)}));
}

void Mailer::to_shards(const Body& body, Outbox& out) const {
  const Message message = encode({.body = body});
  for (std::uint32_t shard = 0; shard < layout_->shards(); ++shard)
    out.send(address_of(ShardId(shard)), message);
}

void Mailer::to_shards_of(WorkerId worker, const Body& body, Outbox& out) const {
  const Message message = encode({.body = body});
  for (const ShardId shard : stages_->share_of(worker).shards) out.send(address_of(shard), message);
}

void Mailer::stop(WorkerId worker, Outbox& out) const {
  to_worker(worker, msg::Stop{roster_.stage_of(worker).nonce}, out);
}

void Mailer::refuse_evicted(WorkerId worker, Outbox& out) const {
  to_worker(worker, msg::Refused{msg::Refused::Reason::unknown_worker, "evicted", {}}, out);
}

}  // namespace leeway
