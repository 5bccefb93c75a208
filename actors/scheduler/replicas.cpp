#include "actors/scheduler/replicas.hpp"

namespace leeway {

using Standing = msg::Replicate::Standing;
using Change = msg::ReplicasChanged::Change;

Replicas::Replicas(const Job& job)
    : pairs_(job.layout->shards(), Pair{.standby = job.plan.replicas > 1}) {}

void Replicas::start(Outbox& out) const {
  for (std::uint32_t shard = 0; shard < pairs_.size(); ++shard) {
    out.watch(address_of(ShardId(shard)));
    if (pairs_[shard].standby) out.watch(standby_of(ShardId(shard)));
  }
}

Address Replicas::receiver_of(const Pair& pair, std::uint32_t shard) {
  return takes_over(pair) ? standby_of(ShardId(shard)) : address_of(ShardId(shard));
}

void Replicas::give(Pair& pair, std::uint32_t shard, Standing standing, Outbox& out) {
  pair.standby = false;
  pair.order = msg::Replicate{++pair.configuration, standing, pair.launch};
  out.send(receiver_of(pair, shard), encode({.body = *pair.order}));
}

void Replicas::report(const Event& decision, ShardId shard, Change change,
                      const std::string& reason, Outbox& out) {
  out.emit(decision);
  out.send(kMonitor, encode({.body = msg::ReplicasChanged{shard, change, reason}}));
}

bool Replicas::ended(Address actor, const EndReason& reason, Outbox& out) {
  const ShardId shard(actor.index);
  Pair& pair = pairs_.at(actor.index);
  if (actor.kind == RoleKind::standby) {
    // A standby that takes over does not need to hear the earlier primary.
    if (takes_over(pair)) return reason.kind == EndReason::Kind::cut_off;
    if (!pair.standby && !has_order(pair, Standing::seeding)) return true;
    report(event::StandbyLost{shard, pair.launch}, shard, Change::standby_lost, reason.text, out);
    give(pair, actor.index, Standing::alone, out);
    return true;
  }
  // The host reports whether the standby that takes over still lives, or was the actor that ended.
  if (takes_over(pair)) {
    out.watch(standby_of(ShardId(actor.index)));
    return true;
  }
  if (!pair.standby) return false;
  report(event::PrimaryLost{shard}, shard, Change::primary_lost, reason.text, out);
  give(pair, actor.index, Standing::promoted, out);
  return true;
}

void Replicas::ready(Address standby, const msg::StandbyReady& report, Outbox& out) {
  Pair& pair = pairs_.at(standby.index);
  if (takes_over(pair) || report.launch < pair.launch) return;  // too early, or replaced
  if (report.launch == pair.launch) {
    // The seed may have been lost on its way.
    if (has_order(pair, Standing::seeding)) send_again(receiver_of(pair, standby.index), out);
    return;
  }
  pair.launch = report.launch;
  out.watch(standby);
  give(pair, standby.index, Standing::seeding, out);
}

void Replicas::confirmed(Address from, const msg::Replicating& answer, Outbox& out) {
  Pair& pair = pairs_.at(from.index);
  if (!pair.order || answer.configuration != pair.configuration) return;
  const ShardId shard(from.index);
  if (takes_over(pair)) {
    report(event::StandbyTookOver{shard, pair.launch}, shard, Change::took_over, {}, out);
    out.watch(from);  // it may be in another process now
  }
  if (has_order(pair, Standing::seeding)) {
    pair.standby = true;
    report(event::StandbyInSync{shard, pair.launch}, shard, Change::in_sync, {}, out);
  }
  pair.order.reset();
}

void Replicas::send_again(Address peer, Outbox& out) const {
  const Pair& pair = pairs_.at(peer.index);
  if (pair.order && receiver_of(pair, peer.index) == peer)
    out.send(peer, encode({.body = *pair.order}));
}

}  // namespace leeway
