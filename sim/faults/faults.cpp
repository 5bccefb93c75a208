#include "sim/faults/faults.hpp"

#include <algorithm>

namespace leeway::sim {

Faults::Faults(const std::vector<plan::Fault>& faults, std::shared_ptr<Disturbances> disturbances,
               MakeRole make_role)
    : disturbances_(std::move(disturbances)), make_role_(std::move(make_role)) {
  const StartAgain again = [this](Simulator&, Address actor) { start_again(actor); };
  for (std::size_t number = 0; number < faults.size(); ++number) {
    const plan::Fault& spec = faults[number];
    if (std::holds_alternative<plan::Joins>(spec.kind)) launches_[spec.actor] = 0;
    if (auto fault = make_fault(spec, again))
      faults_.push_back({number, spec, std::move(fault), false});
  }
}

bool Faults::wait_for_iterations() const {
  return std::any_of(faults_.begin(), faults_.end(), [](const Waiting& waiting) {
    return std::holds_alternative<std::int64_t>(waiting.spec.at);
  });
}

void Faults::arm(Simulator& host) {
  host_ = &host;
  for (auto& waiting : faults_)
    if (const auto* seconds = std::get_if<double>(&waiting.spec.at))
      host.at(Instant{} + time_of(*seconds, 1), [this, &waiting] { begin(waiting); });
}

void Faults::on_event(Instant at, Address actor, const Event& event) {
  const auto* started = event.as<event::StepStarted>();
  if (!started) return;
  for (auto& waiting : faults_) {
    const auto* iteration = std::get_if<std::int64_t>(&waiting.spec.at);
    if (!iteration || waiting.begun || started->iteration.value() < *iteration) continue;
    if (waiting.spec.actor.kind == RoleKind::worker && waiting.spec.actor != actor) continue;
    waiting.begun = true;
    // Later, because the actor is still in its handler.
    host_->at(at, [this, &waiting] { begin(waiting); });
  }
}

void Faults::begin(Waiting& waiting) {
  waiting.begun = true;
  // A fault of an actor that has ended, or that has joined before, changes nothing.
  const bool joins = std::holds_alternative<plan::Joins>(waiting.spec.kind);
  if (disturbances_ && host_->lives(waiting.spec.actor) != joins)
    disturbances_->fired(waiting.number);
  waiting.fault->begin(*host_);
  const Duration lasts = waiting.fault->lasts();
  if (lasts > Duration{})
    host_->at(host_->now() + lasts, [this, &waiting] { waiting.fault->end(*host_); });
}

bool Faults::has_standby(Address actor) const {
  if (actor.kind != RoleKind::shard) return actor.kind == RoleKind::standby;
  const auto addresses = host_->addresses();
  return std::ranges::find(addresses, standby(actor.index)) != addresses.end();
}

void Faults::start_again(Address actor) {
  if (has_standby(actor)) {
    actor = standby(actor.index);
    // The earlier standby takes over soon.
    if (host_->lives(actor) && !host_->lives(shard(actor.index)))
      return host_->at(host_->now() + host_->world().detection,
                       [this, actor] { start_again(actor); });
  }
  if (host_->lives(actor)) return;
  const auto launch = launches_.try_emplace(actor, 1).first;
  host_->restart(actor, make_role_(actor, ++launch->second));
}

}  // namespace leeway::sim
