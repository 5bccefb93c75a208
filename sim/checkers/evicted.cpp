#include "sim/checkers/evicted.hpp"

namespace leeway::sim {

void EvictedChecker::on_event(Instant, Address actor, const Event& event) {
  if (ended_.contains(actor)) violated({actor}, "the actor has ended, but emits an event");
  if (const auto* fenced = event.as<event::Fenced>())
    fenced_.insert({actor, address_of(fenced->worker)});
  if (const auto* removed = event.as<event::Removed>())
    fenced_.insert({actor, address_of(removed->worker)});
  if (const auto* admitted = event.as<event::Admitted>())
    fenced_.erase({actor, address_of(admitted->worker)});
  const auto* evicted = event.as<event::Evicted>();
  if (!evicted) return;
  // All stages of the pipeline are evicted with it.
  for (std::uint32_t stage = 0; stage < job_->stages->count(); ++stage) {
    const Address one = address_of(job_->stages->worker(evicted->worker, stage));
    if (begun_.contains(one)) evicted_[one] = begun_[one];
  }
}

void EvictedChecker::on_sent(Instant, const Letter& letter) {
  const Address from = letter.from(), to = letter.to();
  if (ended_.contains(from)) violated({from, to}, "the actor has ended, but sends a message");
  const auto* admit =
      from == kScheduler && to.kind == RoleKind::shard ? letter.as<msg::Admit>() : nullptr;
  if (admit) begun_[address_of(admit->worker)] = admit->session;
  if (to.kind != RoleKind::worker) return;
  if (from.kind == RoleKind::shard) {
    if (!fenced_.contains({from, to})) return;
    if (letter.as<msg::Weights>() || letter.as<msg::Pushed>())
      violated({from, to}, "a ", name_of(letter.open()->body), " to a fenced worker");
  } else if (from == kScheduler) {
    const bool start = letter.as<msg::Start>();
    if (!start && !letter.as<msg::Lease>() && !letter.as<msg::NoData>()) return;
    const Session session = letter.open()->session;
    const auto evicted = evicted_.find(to);
    if (evicted != evicted_.end() && session <= evicted->second)
      violated({from, to}, "a ", name_of(letter.open()->body), " to session ", session,
               ", which was evicted");
    if (start) begun_[to] = session;
  }
}

void EvictedChecker::on_delivered(Instant, const Letter& letter) {
  if (ended_.contains(letter.to()))
    violated({letter.from(), letter.to()}, "a message was delivered to an actor that has ended");
}

}  // namespace leeway::sim
