#include "sim/checkers/groups.hpp"

namespace leeway::sim {

GroupChecker::GroupChecker(std::shared_ptr<const Job> job)
    : Checker("a host group pushes the gradients of all its samples, each once", Damage::updates),
      job_(std::move(job)) {}

bool GroupChecker::is_lead(Address actor) const {
  return actor.kind == RoleKind::worker &&
         job_->stages->lead_of(WorkerId(actor.index)) == WorkerId(actor.index);
}

void GroupChecker::on_event(Instant, Address actor, const Event& event) {
  if (!job_->stages->grouped() || !is_lead(actor)) return;
  const auto* started = event.as<event::StepStarted>();
  if (!started) return;
  Group& group = groups_[actor];
  group = {.session = group.session, .iteration = started->iteration, .samples = started->samples};
}

void GroupChecker::on_sent(Instant, const Letter& letter) {
  if (!job_->stages->grouped() || !is_lead(letter.from())) return;
  if (const auto* share = letter.as<msg::GroupShare>())
    shared(letter.from(), letter.to(), letter.open()->session, *share);
  if (letter.to().kind != RoleKind::shard) return;
  if (const auto* push = letter.as<msg::Push>())
    pushed(letter.from(), letter.open()->session, *push);
}

void GroupChecker::shared(Address lead, Address follower, Session session,
                          const msg::GroupShare& share) {
  Group& group = groups_[lead];
  group.session = session;
  if (share.iteration != group.iteration)
    violated({lead, follower}, "a share of iteration ", share.iteration, " in iteration ",
             group.iteration);
  if (group.delivered.empty()) group.end = begin_of(lead, group) + group.samples;
  if (share.begin != group.end)
    violated({lead, follower}, "a share begins at position ", share.begin,
             "; the share before it ends at ", group.end);
  if (!group.delivered.try_emplace(follower).second)
    violated({lead, follower}, "two shares of iteration ", share.iteration);
  group.end = share.end;
  group.samples += share.end - share.begin;
}

std::int64_t GroupChecker::begin_of(Address lead, const Group& group) {
  const auto& leases = leases_[lead];
  const auto found = leases.find(group.iteration);
  if (found == leases.end())
    violated({lead}, "iteration ", group.iteration, " begins, and is not leased");
  return found->second;
}

void GroupChecker::on_delivered(Instant, const Letter& letter) {
  if (!job_->stages->grouped() || !is_lead(letter.to())) return;
  if (const auto* lease = letter.as<msg::Lease>()) {
    auto& leases = leases_[letter.to()];
    leases.erase(leases.begin(), leases.lower_bound(lease->first_iteration + -kKeptLeases));
    for (std::int64_t i = 0; i < lease->iterations(); ++i)
      leases[lease->first_iteration + i] = lease->begin + i * lease->batch;
  }
  const auto* gradient = letter.as<msg::GroupGradient>();
  if (!gradient) return;
  Group& group = groups_[letter.to()];
  const auto found = group.delivered.find(letter.from());
  if (found == group.delivered.end() || gradient->iteration != group.iteration ||
      letter.open()->session != group.session)
    return;
  for (const msg::BlockData& block : gradient->blocks) found->second.insert(block.block);
}

void GroupChecker::pushed(Address lead, Session session, const msg::Push& push) const {
  const auto found = groups_.find(lead);
  if (push.samples == 0 || found == groups_.end()) return;
  const Group& group = found->second;
  if (push.iteration != group.iteration) return;  // it is sent again
  if (push.samples != group.samples)
    violated({lead}, "a push of ", push.samples, " samples in iteration ", push.iteration,
             "; the workers of the group have ", group.samples);
  for (const auto& [follower, blocks] : group.delivered)
    for (const msg::BlockData& block : push.blocks)
      if (!blocks.contains(block.block) || session != group.session)
        violated({lead, follower}, "a push of block ", block.block, " in iteration ",
                 push.iteration, " without the gradient of this worker");
}

}  // namespace leeway::sim
