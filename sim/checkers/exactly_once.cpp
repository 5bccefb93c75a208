#include "sim/checkers/exactly_once.hpp"

namespace leeway::sim {

void ExactlyOnceChecker::on_event(Instant, Address actor, const Event& event) {
  if (const auto* dropped = event.as<event::PushDropped>())
    dropped_[{actor, dropped->worker, dropped->session}].insert(dropped->iteration);
  if (const auto* applied = event.as<event::BucketApplied>()) check_applied(actor, *applied);
}

void ExactlyOnceChecker::check_applied(Address actor, const event::BucketApplied& applied) {
  const auto& [worker, session, iteration, bucket, samples, skipped] = applied;
  if (!applied_.at(actor, worker)[{session, bucket}].insert(iteration))
    violated({actor, address_of(worker)}, "bucket ", bucket, " of iteration ", iteration,
             ", session ", session, ", applied twice");
  if (is_dropped(actor, worker, session, iteration))
    violated({actor, address_of(worker)}, "bucket ", bucket, " of iteration ", iteration,
             " applied, although its round was closed without it");
}

bool ExactlyOnceChecker::is_dropped(Address shard, WorkerId worker, Session session,
                                    Iteration iteration) const {
  const auto found = dropped_.find({shard, worker, session});
  return found != dropped_.end() && found->second.contains(iteration);
}

void ExactlyOnceChecker::on_delivered(Instant, const Letter& letter) {
  if (letter.from().kind != RoleKind::shard || letter.to().kind != RoleKind::worker) return;
  const auto* pushed = letter.as<msg::Pushed>();
  if (!pushed) return;
  const Session session = letter.open()->session;
  const WorkerId worker(letter.to().index);
  if (is_dropped(letter.from(), worker, session, pushed->iteration)) return;
  const auto is_applied = [&] {
    const auto* applied = applied_.find(letter.from(), worker);
    if (!applied) return false;
    const auto found = applied->find({session, pushed->bucket});
    return found != applied->end() && found->second.contains(pushed->iteration);
  };
  if (!is_applied())
    violated({letter.from(), letter.to()}, "bucket ", pushed->bucket, " of iteration ",
             pushed->iteration, ", session ", session, ", acknowledged but not applied");
}

}  // namespace leeway::sim
