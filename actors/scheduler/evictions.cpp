#include "actors/scheduler/evictions.hpp"

#include <utility>

namespace leeway {

bool Evictions::evict(WorkerId worker, const std::string& reason, bool rejoined, Outbox& out) {
  const WorkerId lead = stages_->lead_of(worker);
  auto& member = roster_.at(lead);
  if (member.is_out() || member.state == State::stopped) return false;
  out.emit(event::Evicted{lead});
  member.took_part = member.has_started();
  roster_.enter(lead, State::fencing);
  member.end_reason = stages_->end_of(worker, reason);
  member.ended_worker = worker;
  member.rejoined = rejoined;
  member.missing = mailer_.stage_shard_pairs();
  for (auto& stage : member.stages) {
    // Before their Start, workers still wait for one.
    if (stage.joined && !stage.ended && !member.took_part) stage.rejoins = stage.nonce;
    stage.joined = false;
  }
  const View view = roster_.next_view();
  mailer_.for_each_stage(
      lead,
      [&](WorkerId one) {
        return msg::Fence{one, view};
      },
      out);
  // The others may live, and only seem to have ended.
  for (const WorkerId one : roster_.workers_of(lead))
    if (!roster_.stage_of(one).rejoins) mailer_.refuse_evicted(one, out);
  return true;
}

std::optional<PartialIterations> Evictions::fenced(ShardId shard, const msg::Fenced& answer) {
  auto& member = roster_.member_of(answer.worker);
  if (member.state != State::fencing || member.missing == 0) return std::nullopt;
  const auto& buckets = stages_->share_of(answer.worker).at[shard.value()].buckets;
  if (buckets.empty() ||
      !member.partial.add(stages_->stage_of(answer.worker), shard, answer.clock, answer.applied,
                          static_cast<std::uint32_t>(buckets.size())))
    return std::nullopt;
  if (--member.missing > 0) return std::nullopt;
  return std::exchange(member.partial, {});
}

}  // namespace leeway
