#include "sim/checkers/exactly_once.hpp"

namespace leeway::sim {

void ExactlyOnceChecker::on_event(Instant, Address actor, const Event& event) {
  if (event.kind == Event::Kind::late)
    late_[{actor, event.worker, event.incarnation}].insert(event.iteration);
  if (event.kind != Event::Kind::part_applied) return;
  const auto part = static_cast<std::uint32_t>(event.value);
  if (!applied_[{actor, event.worker, part, event.incarnation}].insert(event.iteration))
    violated({actor, address_of(event.worker)}, "part ", part, " of iteration ", event.iteration,
             ", incarnation ", event.incarnation, ", applied twice");
  if (is_late(actor, event.worker, event.incarnation, event.iteration))
    violated({actor, address_of(event.worker)}, "part ", part, " of iteration ", event.iteration,
             " applied, whose round was closed without it");
}

bool ExactlyOnceChecker::is_late(Address shard, WorkerId worker, Incarnation incarnation,
                                 Iteration iteration) const {
  const auto late = late_.find({shard, worker, incarnation});
  return late != late_.end() && late->second.contains(iteration);
}

void ExactlyOnceChecker::on_delivered(Instant, const Letter& letter) {
  if (letter.from().kind != RoleKind::shard || letter.to().kind != RoleKind::worker) return;
  const auto* pushed = letter.as<msg::Pushed>();
  if (!pushed) return;
  const WorkerId worker(letter.to().index);
  const Incarnation incarnation = letter.open()->incarnation;
  if (is_late(letter.from(), worker, incarnation, pushed->iteration)) return;
  const auto found = applied_.find({letter.from(), worker, pushed->part, incarnation});
  if (found == applied_.end() || !found->second.contains(pushed->iteration))
    violated({letter.from(), letter.to()}, "part ", pushed->part, " of iteration ",
             pushed->iteration, ", incarnation ", incarnation, ", acknowledged but not applied");
}

}  // namespace leeway::sim
