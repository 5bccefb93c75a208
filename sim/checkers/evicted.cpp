#include "sim/checkers/evicted.hpp"

namespace leeway::sim {

void EvictedChecker::on_event(Instant, Address actor, const Event& event) {
  if (ended_.contains(actor)) violated({actor}, "it has ended, and something happens there");
  const Address worker = address_of(event.worker);
  if (event.kind == Event::Kind::fenced || event.kind == Event::Kind::removed)
    fenced_.insert({actor, worker});
  if (event.kind == Event::Kind::admitted) fenced_.erase({actor, worker});
  if (event.kind != Event::Kind::evicted) return;
  // A pipeline goes with all its stages.
  for (std::uint32_t stage = 0; stage < job_->stages->count(); ++stage) {
    const Address one = address_of(job_->stages->worker(event.worker, stage));
    if (started_.contains(one)) evicted_[one] = started_[one];
  }
}

void EvictedChecker::on_sent(Instant, const Letter& letter) {
  const Address from = letter.from(), to = letter.to();
  if (ended_.contains(from)) violated({from, to}, "it has ended, and sends a message");
  if (to.kind != RoleKind::worker) return;
  if (from.kind == RoleKind::shard) {
    if (!fenced_.contains({from, to})) return;
    if (letter.as<msg::Weights>() || letter.as<msg::Pushed>())
      violated({from, to}, "a ", name_of(letter.open()->body), " to a worker that is out");
  } else if (from == kScheduler) {
    const bool start = letter.as<msg::Start>();
    if (!start && !letter.as<msg::Lease>() && !letter.as<msg::NoData>()) return;
    const Incarnation incarnation = letter.open()->incarnation;
    const auto evicted = evicted_.find(to);
    if (evicted != evicted_.end() && incarnation <= evicted->second)
      violated({from, to}, "a ", name_of(letter.open()->body), " to incarnation ", incarnation,
               ", which was evicted");
    if (start) started_[to] = incarnation;
  }
}

void EvictedChecker::on_delivered(Instant, const Letter& letter) {
  if (ended_.contains(letter.to()))
    violated({letter.from(), letter.to()}, "a message was delivered to one who has ended");
}

}  // namespace leeway::sim
