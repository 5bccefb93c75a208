// What goes wrong in a simulated run: actors that stand still, links that keep or lose messages,
// clocks that stop.
#include "core/check.hpp"
#include "sim/simulator_threads.hpp"

namespace leeway::sim {

void Simulator::at(Instant time, std::function<void()> action) {
  const std::uint64_t number = next_action_++;
  actions_[number] = std::move(action);
  schedule(std::max(time, now_), {.kind = Pending::Kind::action, .number = number});
}

// ---- actors ----

void Simulator::freeze(Address address) {
  const ActorIndex actor = index_of(address);
  if (!actors_[actor].role) return;
  ++actors_[actor].freezes;
  look_for(actor);
}

void Simulator::thaw(Address address) {
  const ActorIndex actor = index_of(address);
  if (actors_[actor].freezes == 0) return;  // it ended meanwhile
  if (--actors_[actor].freezes > 0) return;
  look_for(actor);
  resume(actor);
}

bool Simulator::waits(const Pending& event) const {
  const Actor& actor = actors_[event.actor];
  return actor.freezes > 0 || (event.kind == Pending::Kind::timer && clocks_[actor.node].stops > 0);
}

void Simulator::resume(ActorIndex actor) {
  // At once, and so before what is due now: messages between two actors stay in order. A thread
  // takes its time for each, and keeps a queue of them.
  for (auto& event : std::exchange(actors_[actor].waiting, {})) {
    if (threads_)
      schedule(now_, std::move(event));
    else if (waits(event))
      actors_[actor].waiting.push_back(std::move(event));
    else
      handle(event);
  }
}

void Simulator::stop_clock(Address address) {
  auto& clock = clocks_[actors_[index_of(address)].node];
  if (clock.stops++ == 0) clock.stands_at = now_;
}

void Simulator::start_clock(Address address) {
  const NodeIndex node = actors_[index_of(address)].node;
  LW_CHECK(clocks_[node].stops > 0, address);
  if (--clocks_[node].stops > 0) return;
  for (ActorIndex actor = 0; actor < actors_.size(); ++actor)
    if (actors_[actor].node == node && actors_[actor].freezes == 0) resume(actor);
}

bool Simulator::lives(Address address) const {
  const ActorIndex found = index_.find(address);
  return found != AddressMap::kNone && actors_[found].role;
}

std::vector<Address> Simulator::addresses() const {
  std::vector<Address> all;
  for (const auto& actor : actors_) all.push_back(actor.address);
  return all;
}

// ---- links ----

void Simulator::hold(Address from, Address to) {
  links_.hold(index_of(from), index_of(to));
  look_for(index_of(from));
  look_for(index_of(to));
}

void Simulator::forward(ActorIndex from, ActorIndex to, Letter letter) {
  const Instant arrives =
      network_.arrival(from, actors_[from].node, to, actors_[to].node, bytes_of(letter.message()),
                       now_, links_.extra(from, to));
  schedule(arrives, {.kind = Pending::Kind::message,
                     .actor = to,
                     .life = actors_[to].life,
                     .letter = std::move(letter),
                     .connection = links_.connection(from, to)});
}

void Simulator::release(Address from, Address to) {
  const ActorIndex sender = index_of(from), receiver = index_of(to);
  for (auto& letter : links_.release(sender, receiver))
    forward(sender, receiver, std::move(letter));
  look_for(sender);
  look_for(receiver);
}

bool Simulator::release_one(Address from, Address to) {
  const ActorIndex sender = index_of(from), receiver = index_of(to);
  auto letter = links_.release_one(sender, receiver);
  if (letter) forward(sender, receiver, std::move(*letter));
  return letter.has_value();
}

void Simulator::sever(Address a, Address b) {
  links_.sever(index_of(a), index_of(b));
  links_.sever(index_of(b), index_of(a));
  look_for(index_of(a));
  look_for(index_of(b));
}

void Simulator::mend(Address a, Address b) {
  links_.mend(index_of(a), index_of(b));
  links_.mend(index_of(b), index_of(a));
  look_for(index_of(a));
  look_for(index_of(b));
  if (links_.severed(index_of(a), index_of(b))) return;
  // Before either says anything else: what was lost goes first.
  linked(index_of(a), b);
  linked(index_of(b), a);
}

void Simulator::linked(ActorIndex actor, Address peer) {
  Pending event{
      .kind = Pending::Kind::linked, .actor = actor, .life = actors_[actor].life, .other = peer};
  if (waits(event))
    actors_[actor].waiting.push_back(std::move(event));
  else if (threads_)
    threads_->receive(std::move(event));
  else
    handle(event);
}

void Simulator::delay(Address from, Address to, Duration extra) {
  links_.delay(index_of(from), index_of(to), extra);
}

void Simulator::slow_link(Address actor, double factor) {
  network_.slow_node(actors_[index_of(actor)].node, factor);
}

void Simulator::restore_link(Address actor, double factor) {
  network_.restore_node(actors_[index_of(actor)].node, factor);
}

// ---- signs of life ----

bool Simulator::out_of_reach(ActorIndex actor) const {
  if (actors_[actor].freezes > 0) return true;
  const ActorIndex other = index_.find(kScheduler);
  if (links_.untouched() || other == AddressMap::kNone || other == actor) return false;
  return links_.held(actor, other) || links_.held(other, actor) || links_.severed(actor, other);
}

void Simulator::look_for(ActorIndex index) {
  Actor& actor = actors_[index];
  if (!actor.role || actor.address == kScheduler || actor.address == kMonitor) return;
  if (!out_of_reach(index)) {
    actor.out_of_reach = 0;
  } else if (actor.out_of_reach == 0) {
    actor.out_of_reach = next_absence_++;
    schedule(now_ + options_.world.detection, {.kind = Pending::Kind::absent,
                                               .actor = index,
                                               .life = actor.life,
                                               .number = actor.out_of_reach});
  }
}

}  // namespace leeway::sim
