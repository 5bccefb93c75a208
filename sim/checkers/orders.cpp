#include "sim/checkers/orders.hpp"

namespace leeway::sim {

void OrderChecker::on_event(Instant, Address actor, const Event& event) {
  if (!ignoring_.contains(actor)) return;
  if (event.as<event::Admitted>() || event.as<event::Fenced>() || event.as<event::Removed>() ||
      event.as<event::BoundChanged>())
    violated({kScheduler, actor}, name_of(event), " by an order that the shard had to ignore");
}

void OrderChecker::on_delivered(Instant, const Letter& letter) {
  if (letter.to().kind != RoleKind::shard) return;
  if (letter.from() == kScheduler && !numbers_.is_next(letter))
    ignoring_.insert(letter.to());
  else
    ignoring_.erase(letter.to());
}

}  // namespace leeway::sim
