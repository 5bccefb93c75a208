#include "actors/scheduler/round_closer.hpp"

#include <algorithm>

namespace leeway {

bool RoundCloser::close(const msg::RoundClosed& proposed, Outbox& out) {
  // By an older view of the membership: shard 0 proposes again when it hears of the present one.
  if (proposed.view != roster_.view()) return false;
  if (run_.phase() == RunControl::Phase::gathering || run_.phase() == RunControl::Phase::ended)
    return false;
  const auto& contributors = proposed.contributors;
  if (!leases_.suffices(proposed.round, contributors)) return false;
  const double scale = leases_.scale(proposed.round, contributors);
  run_.count_dropped_pushes(leases_.close(proposed.round, contributors, out));
  mailer_.to_shards(msg::CloseRound{proposed.round, contributors, roster_.view(), scale}, out);
  const Iteration next = proposed.round + 1;
  for (const WorkerId lead : roster_.taking_part()) {
    if (std::binary_search(contributors.begin(), contributors.end(), lead)) continue;
    auto& member = roster_.at(lead);
    if (member.state == State::admitting) member.start = std::max(member.start, next);
    if (member.state != State::running || member.start >= next) continue;
    member.resume_round = next;
    mailer_.to_worker(lead, msg::PushDropped{next}, out);
  }
  return true;
}

void RoundCloser::send_again(WorkerId worker, Outbox& out) const {
  const auto& member = roster_.member_of(worker);
  if (member.state == State::running && member.resume_round > member.start)
    mailer_.to_worker(worker, msg::PushDropped{member.resume_round}, out);
}

}  // namespace leeway
