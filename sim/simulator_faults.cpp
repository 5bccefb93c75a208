// The faults of a simulated run: frozen actors, held and severed links, stopped clocks.
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
  const ActorIndex actor = machine_of(address);
  if (!actors_[actor].role) return;
  ++actors_[actor].freezes;
  update_absence(actor);
}

void Simulator::thaw(Address address) {
  const ActorIndex actor = machine_of(address);
  if (actors_[actor].freezes == 0) return;  // the actor has ended meanwhile
  if (--actors_[actor].freezes > 0) return;
  update_absence(actor);
  resume(actor);
}

bool Simulator::waits(const Pending& event) const {
  const Actor& actor = actors_[event.actor];
  return actor.freezes > 0 || (event.kind == Pending::Kind::timer && clocks_[actor.node].stops > 0);
}

void Simulator::resume(ActorIndex actor) {
  // Without threads, waiting events are handled now, before those due now, so that messages between
  // two actors stay in order. Threads queue them.
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
  auto& clock = clocks_[actors_[machine_of(address)].node];
  if (clock.stops++ == 0) clock.stopped_at = now_;
}

void Simulator::start_clock(Address address) {
  const MachineIndex node = actors_[machine_of(address)].node;
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
  links_.hold(machine_of(from), machine_of(to));
  update_absence(machine_of(from));
  update_absence(machine_of(to));
}

void Simulator::forward(ActorIndex from, ActorIndex to, Letter letter) {
  const Instant arrives =
      network_.arrival(from, actors_[from].node, to, actors_[to].node, bytes_of(letter.message()),
                       now_, links_.extra(from, to));
  schedule(arrives, {.kind = Pending::Kind::message,
                     .actor = to,
                     .launch = actors_[to].launch,
                     .letter = std::move(letter),
                     .connection = links_.connection(from, to)});
}

void Simulator::release(Address from, Address to) {
  const ActorIndex sender = machine_of(from), receiver = machine_of(to);
  for (auto& letter : links_.release(sender, receiver))
    forward(sender, receiver, std::move(letter));
  update_absence(sender);
  update_absence(receiver);
}

bool Simulator::release_one(Address from, Address to) {
  const ActorIndex sender = machine_of(from), receiver = machine_of(to);
  auto letter = links_.release_one(sender, receiver);
  if (letter) forward(sender, receiver, std::move(*letter));
  return letter.has_value();
}

void Simulator::sever(Address a, Address b) {
  links_.sever(machine_of(a), machine_of(b));
  links_.sever(machine_of(b), machine_of(a));
  update_absence(machine_of(a));
  update_absence(machine_of(b));
}

void Simulator::mend(Address a, Address b) {
  links_.mend(machine_of(a), machine_of(b));
  links_.mend(machine_of(b), machine_of(a));
  update_absence(machine_of(a));
  update_absence(machine_of(b));
  if (links_.severed(machine_of(a), machine_of(b))) return;
  // At once, so that both roles repeat lost messages before they send new ones.
  linked(machine_of(a), actors_[machine_of(b)].address);
  linked(machine_of(b), actors_[machine_of(a)].address);
}

void Simulator::linked(ActorIndex actor, Address peer) {
  Pending event{.kind = Pending::Kind::linked,
                .actor = actor,
                .launch = actors_[actor].launch,
                .other = peer};
  if (waits(event))
    actors_[actor].waiting.push_back(std::move(event));
  else if (threads_)
    threads_->receive(std::move(event));
  else
    handle(event);
}

void Simulator::delay(Address from, Address to, Duration extra) {
  links_.delay(machine_of(from), machine_of(to), extra);
}

void Simulator::slow_link(Address actor, double factor) {
  network_.slow_node(actors_[machine_of(actor)].node, factor);
}

void Simulator::restore_link(Address actor, double factor) {
  network_.restore_node(actors_[machine_of(actor)].node, factor);
}

// ---- reachability ----

bool Simulator::is_unreachable(ActorIndex actor) const {
  if (actors_[actor].freezes > 0) return true;
  const ActorIndex other = index_.find(kScheduler);
  if (links_.untouched() || other == AddressMap::kNone || other == actor) return false;
  return links_.held(actor, other) || links_.held(other, actor) || links_.severed(actor, other);
}

void Simulator::update_absence(ActorIndex index) {
  Actor& actor = actors_[index];
  if (!actor.role || actor.address == kScheduler || actor.address == kMonitor) return;
  if (!is_unreachable(index)) {
    actor.absence = 0;
  } else if (actor.absence == 0) {
    actor.absence = next_absence_++;
    schedule(now_ + options_.world.detection, {.kind = Pending::Kind::absent,
                                               .actor = index,
                                               .launch = actor.launch,
                                               .number = actor.absence});
  }
}

}  // namespace leeway::sim
