#include "sim/checkers/exactly_once.hpp"

namespace leeway::sim {

const IterationSet* ExactlyOnceChecker::find(const Lives& lives, Incarnation incarnation,
                                             std::uint32_t part) {
  for (const Life& life : lives)
    if (life.incarnation == incarnation && part < life.applied.size()) return &life.applied[part];
  return nullptr;
}

IterationSet& ExactlyOnceChecker::at(Lives& lives, Incarnation incarnation, std::uint32_t part) {
  std::size_t i = 0;
  while (i < lives.size() && lives[i].incarnation != incarnation) ++i;
  if (i == lives.size()) lives.push_back({incarnation, {}});
  auto& applied = lives[i].applied;
  if (applied.size() <= part) applied.resize(part + std::size_t{1});
  return applied[part];
}

void ExactlyOnceChecker::on_event(Instant, Address actor, const Event& event) {
  if (event.kind == Event::Kind::push_dropped)
    late_[{actor, event.worker, event.incarnation}].insert(event.iteration);
  if (event.kind != Event::Kind::bucket_applied) return;
  const auto part = static_cast<std::uint32_t>(event.value);
  auto& lives = workers_.at(actor, event.worker);
  if (!at(lives, event.incarnation, part).insert(event.iteration))
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
  const Incarnation incarnation = letter.open()->incarnation;
  const WorkerId worker(letter.to().index);
  if (is_late(letter.from(), worker, incarnation, pushed->iteration)) return;
  const auto* lives = workers_.find(letter.from(), worker);
  const auto* applied = lives ? find(*lives, incarnation, pushed->bucket) : nullptr;
  if (!applied || !applied->contains(pushed->iteration))
    violated({letter.from(), letter.to()}, "part ", pushed->bucket, " of iteration ",
             pushed->iteration, ", incarnation ", incarnation, ", acknowledged but not applied");
}

}  // namespace leeway::sim
