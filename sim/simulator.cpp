#include "sim/simulator.hpp"

#include <algorithm>
#include <cmath>

#include "core/check.hpp"
#include "core/text.hpp"
#include "sim/chance.hpp"
#include "sim/simulator_threads.hpp"
#include "sim/words.hpp"

namespace leeway::sim {

namespace {

/// The other replica of a shard or standby; the host for other actors.
Address replica_of(Address actor) {
  if (actor.kind == RoleKind::shard) return standby(actor.index);
  return actor.kind == RoleKind::standby ? shard(actor.index) : kHost;
}

/// The sender index of the host's messages.
constexpr ActorIndex kHostIndex = ~ActorIndex{0};

}  // namespace

class Simulator::Box final : public Outbox {
 public:
  Box(Simulator& simulator, ActorIndex self, Address address, std::uint64_t seed)
      : simulator_(simulator),
        self_(self),
        random_(Rng::stream(seed, static_cast<std::uint64_t>(address.kind) + 1, address.index)) {}

  Instant now() const override { return simulator_.node_time(simulator_.actors_[self_].node); }
  Rng& random() override { return random_; }
  void send(Address to, Message message) override {
    if (is_lost()) return;
    const Actor& actor = simulator_.actors_[self_];
    const auto& ends_after = simulator_.options_.ends_after;
    if (!ends_after)
      return simulator_.deliver(self_, actor.address, actor.node, to, std::move(message));
    const Message sent = message;
    simulator_.deliver(self_, actor.address, actor.node, to, std::move(message));
    if (ends_after(actor.address, to, sent)) simulator_.end(self_, "lost after a message");
  }
  void after(Duration delay, TimerToken token) override {
    if (is_lost()) return;
    const Instant rings = simulator_.now_ + delay + simulator_.options_.world.timer;
    simulator_.schedule(rings, {.kind = Pending::Kind::timer,
                                .actor = self_,
                                .launch = simulator_.actors_[self_].launch,
                                .number = token});
  }
  void compute(std::shared_ptr<Work> work) override {
    if (is_lost()) return;
    const bool on_disk = work->waits_for_disk();
    const Slowdown slow_down =
        on_disk ? Slowdown() : simulator_.compute_.slow_down(address(), *work, simulator_.now_);
    const std::uint32_t task = simulator_.tasks_.put({.actor = self_,
                                                      .launch = simulator_.actors_[self_].launch,
                                                      .work = std::move(work),
                                                      .slow_down = slow_down});
    if (on_disk)
      simulator_.begin_disk_work(task);
    else if (simulator_.threads_)
      simulator_.threads_->compute(task);
    else if (simulator_.cores_[simulator_.actors_[self_].node].take(task))
      simulator_.begin_part(task);
  }
  void watch(Address watched) override {
    if (is_lost()) return;
    const ActorIndex found = simulator_.find_here(watched);
    if (found == AddressMap::kNone) {
      if (auto* const events = simulator_.options_.events) events->watch_out(address(), watched);
      return;
    }
    Actor& actor = simulator_.actors_[found];
    auto& watchers = actor.watchers;
    if (std::find(watchers.begin(), watchers.end(), self_) == watchers.end())
      watchers.push_back(self_);
    if (!actor.role && actor.end_reason)
      simulator_.schedule(simulator_.now_ + simulator_.options_.world.detection,
                          {.kind = Pending::Kind::down,
                           .actor = self_,
                           .launch = simulator_.actors_[self_].launch,
                           .other = watched,
                           .connection = found,
                           .other_launch = actor.launch});
  }
  void take_over(Address address) override {
    if (!is_lost()) simulator_.take_over(self_, address);
  }
  void emit_numbered(std::uint64_t number, const Event& event) override {
    if (!is_lost() && is_new(number)) emit(event);
  }
  void handled_numbered(std::uint64_t number, Address from, const Message& message) override {
    if (is_lost() || !is_new(number)) return;
    simulator_.observers_.delivered(simulator_.now_, {from, address(), message});
  }
  bool is_checked() const override { return simulator_.observers_.any(); }
  void emit_to_checkers(const Event& event) override {
    if (!is_lost()) simulator_.observers_.event(simulator_.now_, address(), event);
  }
  void emit(const Event& event) override {
    if (is_lost()) return;
    simulator_.trace_.event(simulator_.now_, address(), event);
    if (const auto& call = simulator_.options_.on_event) call(address(), simulator_.now_, event);
    simulator_.observers_.event(simulator_.now_, address(), event);
  }

 private:
  Address address() const { return simulator_.actors_[self_].address; }
  /// The actor has ended in the middle of its handler.
  bool is_lost() const { return !simulator_.actors_[self_].role; }
  bool is_new(std::uint64_t number) {
    Actor& actor = simulator_.actors_[self_];
    return simulator_.observers_.record(actor.address, number, actor.recorded);
  }

  Simulator& simulator_;
  ActorIndex self_;
  Rng random_;
};

Simulator::Simulator(Options options)
    : options_(std::move(options)),
      network_(options_.world, options_.seed),
      compute_(options_.world, options_.stragglers, options_.first_iterations, options_.seed,
               options_.disturbances),
      own_trace_(options_.trace),
      trace_(options_.shared_trace ? *options_.shared_trace : own_trace_),
      observers_(options_.shared_observers
                     ? HostObservers(options_.shared_observers, options_.presence)
                     : HostObservers(options_.observers)) {
  network_.add_node();
  cores_.emplace_back(options_.world.cores);
  clocks_.emplace_back();
  if (!options_.world.has_threads()) return;
  threads_ = std::make_unique<Threads>(*this);
  threads_->add_node();
}

Simulator::~Simulator() = default;

void Simulator::add(Address address, std::shared_ptr<Role> role) {
  LW_CHECK(index_.find(address) == AddressMap::kNone, address);
  const auto index = static_cast<ActorIndex>(actors_.size());
  const MachineIndex node = node_for(address);
  index_.set(address, index);
  machines_.set(address, index);
  actors_.push_back({.address = address,
                     .node = node,
                     .role = std::move(role),
                     .box = std::make_unique<Box>(*this, index, address, options_.seed)});
  if (threads_) threads_->add_actor();
}

MachineIndex Simulator::node_for(Address address) {
  const bool has_node = address.kind == RoleKind::worker || address.kind == RoleKind::shard ||
                        address.kind == RoleKind::standby;
  if (options_.world.nodes == World::Nodes::one || !has_node) return 0;
  const bool paired =
      options_.world.nodes == World::Nodes::pairs && address.kind != RoleKind::standby;
  const bool is_worker = address.kind == RoleKind::worker;
  const std::uint32_t number =
      is_worker ? address.index / options_.world.workers_per_node : address.index;
  const auto node = static_cast<MachineIndex>(cores_.size());
  if (paired || is_worker) {
    const auto [shared, is_new] = shared_nodes_.try_emplace(number, node);
    if (!is_new) return shared->second;
  }
  network_.add_node();
  cores_.emplace_back(options_.world.cores);
  clocks_.emplace_back();
  if (threads_) threads_->add_node();
  return node;
}

void Simulator::start() {
  for (ActorIndex actor = 0; actor < actors_.size(); ++actor)
    guarded(actor, [](Role& role, Outbox& box) { role.on_start(box); });
}

void Simulator::schedule(Instant at, Pending event) {
  due_.push(at, pending_.put(std::move(event)));
}

void Simulator::deliver(ActorIndex from, Address from_address, MachineIndex from_node, Address to,
                        Message message) {
  Letter letter(from_address, to, std::move(message));
  observers_.sent(now_, letter);
  const ActorIndex receiver = find_here(to);
  if (receiver == AddressMap::kNone) {
    if (options_.events) options_.events->send_out(from_address, to, letter.message());
    return;
  }
  if (!actors_[receiver].role) return;
  Duration extra;
  std::uint32_t connection = 0;
  if (!links_.untouched()) {
    if (links_.severed(from, receiver)) return;
    if (links_.held(from, receiver)) return links_.keep(from, receiver, std::move(letter));
    extra = links_.extra(from, receiver);
    connection = links_.connection(from, receiver);
  }
  // An awake receiver on the same node gets the message without latency.
  const bool awake = threads_ && from_node == actors_[receiver].node && threads_->awake(receiver);
  const Instant at = awake ? network_.in_order(from, receiver, now_ + extra)
                           : network_.arrival(from, from_node, receiver, actors_[receiver].node,
                                              bytes_of(letter.message()), now_, extra);
  schedule(at, {.kind = Pending::Kind::message,
                .actor = receiver,
                .launch = actors_[receiver].launch,
                .letter = std::move(letter),
                .connection = connection});
}

void Simulator::send(Address to, Message message) {
  deliver(kHostIndex, kHost, 0, to, std::move(message));
}

bool Simulator::step() {
  if (due_.empty()) return false;
  advance(due_.next_at());
  Pending event = pending_.take(due_.next_slot());
  due_.pop();
  if (!due_.empty()) pending_.prefetch(due_.next_slot());
  switch (event.kind) {
    case Pending::Kind::core_free:
      release_core(static_cast<MachineIndex>(event.number));
      return true;
    case Pending::Kind::action:
      actions_.extract(event.number).mapped()();
      return true;
    case Pending::Kind::absent:
      if (actors_[event.actor].absence == event.number && lives(event.actor, event.launch))
        notify_watchers(event.actor, now_, true);
      return true;
    case Pending::Kind::cores:
      threads_->handle_cores(static_cast<MachineIndex>(event.number), event.connection);
      return true;
    default:
      if (waits(event)) {
        actors_[event.actor].waiting.push_back(std::move(event));
      } else if (threads_) {
        threads_->receive(std::move(event));
      } else {
        handle(event);
      }
      return true;
  }
}

void Simulator::handle(Pending& event) {
  if (event.kind == Pending::Kind::part_done)
    return end_part(static_cast<std::uint32_t>(event.number));
  if (!lives(event.actor, event.launch)) return;  // the actor has ended
  const Address self = actors_[event.actor].address;
  switch (event.kind) {
    case Pending::Kind::message:
      return handle_message(event);
    case Pending::Kind::timer:
      trace_.timer(now_, self, event.number);
      return guarded(event.actor,
                     [&](Role& role, Outbox& box) { role.on_timer(event.number, box); });
    case Pending::Kind::linked:
      trace_.linked(now_, self, event.other);
      return guarded(event.actor, [&](Role& role, Outbox& box) { role.on_link(event.other, box); });
    case Pending::Kind::report: {
      trace_.down(now_, self, event.other);
      const EndReason reason = reports_.extract(event.number).mapped();
      return guarded(event.actor,
                     [&](Role& role, Outbox& box) { role.on_down(event.other, reason, box); });
    }
    default: {
      // The watched actor was restarted meanwhile, or its standby has taken over.
      if (index_of(event.other) != event.connection ||
          actors_[event.connection].launch != event.other_launch)
        return;
      trace_.down(now_, self, event.other);
      const EndReason reason =
          event.number
              ? EndReason{EndReason::Kind::unreachable,
                          concat("no sign of life for ", options_.world.detection.seconds(), " s")}
              : actors_[index_of(event.other)].end_reason.value();
      return guarded(event.actor,
                     [&](Role& role, Outbox& box) { role.on_down(event.other, reason, box); });
    }
  }
}

void Simulator::handle_message(Pending& event) {
  Letter& letter = event.letter;
  if (!links_.untouched() && letter.from() != kHost &&
      links_.connection(index_of(letter.from()), event.actor) != event.connection)
    return;  // lost with its connection
  const Address self = actors_[event.actor].address;
  if (self != kMonitor && letter.from() != kMonitor) busy_ = now_;
  trace_.delivered(now_, letter.from(), self, letter.message());
  const bool between_replicas = letter.from() == replica_of(self);
  if (between_replicas || !actors_[event.actor].role->is_replicated())
    observers_.delivered(now_, letter);
  guarded(event.actor, [&](Role& role, Outbox& box) {
    if (const auto opened = letter.take_opened()) {
      role.on_decoded(letter.from(), letter.message(), *opened, box);
    } else {
      role.on_message(letter.from(), letter.message(), box);
    }
  });
}

Duration Simulator::perform(std::uint32_t number) {
  Task& task = tasks_.at(number);
  if (!lives(task.actor, task.launch)) return {};
  const Duration time = compute_.time(task.work->cost(task.part));
  try {
    task.work->run(task.part);
  } catch (const CheckFailed&) {
    throw;
  } catch (const std::exception& error) {
    end(task.actor, error.what());
  }
  return time;
}

/// Computes a part of a task that has a core, and schedules its completion.
void Simulator::begin_part(std::uint32_t number) {
  const Duration time = perform(number);
  const Task& task = tasks_.at(number);
  const ActorIndex actor = task.actor;
  const MachineIndex node = actors_[actor].node;
  // A slow worker takes longer without taking the core from others, as on the local host.
  schedule(now_ + time, {.kind = Pending::Kind::core_free, .number = node});
  const Duration pause = task.part == 0 ? task.slow_down.extra : Duration{};
  const Duration slowed = scaled(time, task.slow_down.factor);
  compute_.count_delay(actors_[actor].address, slowed - time, task.part == 0);
  schedule(now_ + slowed + pause,
           {.kind = Pending::Kind::part_done, .actor = actor, .number = number});
}

/// Needs no core.
void Simulator::begin_disk_work(std::uint32_t number) {
  const Task& task = tasks_.at(number);
  const ActorIndex actor = task.actor;
  const auto bytes = static_cast<double>(task.work->cost(0).bytes);
  const double seconds = bytes / options_.world.disk_bytes_per_second;
  perform(number);
  schedule(now_ + options_.world.disk_flush + nanoseconds(std::llround(seconds * 1e9)),
           {.kind = Pending::Kind::part_done, .actor = actor, .number = number});
}

void Simulator::end_part(std::uint32_t number) {
  const ActorIndex actor = tasks_.at(number).actor;
  const std::uint32_t launch = tasks_.at(number).launch;
  const auto work = tasks_.at(number).work;
  const int part = tasks_.at(number).part++;
  if (!lives(actor, launch)) {
    tasks_.erase(number);
    return;
  }
  busy_ = now_;
  trace_.computed(now_, actors_[actor].address, part);
  guarded(actor, [&](Role& role, Outbox& box) { role.on_part(*work, part, box); });
  if (!lives(actor, launch) || part + 1 == work->parts()) {
    tasks_.erase(number);
  } else if (threads_) {
    threads_->compute(number);
  } else if (cores_[actors_[actor].node].take(number)) {
    begin_part(number);
  }
}

void Simulator::release_core(MachineIndex node) {
  if (const auto next = cores_[node].give_back()) begin_part(*next);
}

template <class Handler>
void Simulator::guarded(ActorIndex actor, Handler handler) {
  const auto role = actors_[actor].role;  // stays alive until the handler returns
  if (!role) return;
  try {
    handler(*role, *actors_[actor].box);
  } catch (const CheckFailed&) {
    throw;  // a bug in a role, or a checker's Violation
  } catch (const std::exception& error) {
    end(actor, error.what());
  }
}

void Simulator::end(ActorIndex index, const EndReason& reason) {
  Actor& actor = actors_[index];
  if (!actor.role) return;
  actor.role.reset();
  actor.end_reason = reason;
  actor.freezes = 0;
  for (const auto& event : actor.waiting)
    if (event.kind == Pending::Kind::part || event.kind == Pending::Kind::part_done)
      tasks_.erase(static_cast<std::uint32_t>(event.number));
  actor.waiting.clear();
  observers_.ended(now_, actor.address);
  notify_watchers(index, now_ + options_.world.detection, false);
  if (options_.events) options_.events->on_end(actor.address, reason);
}

void Simulator::notify_watchers(ActorIndex index, Instant when, bool unreachable) {
  for (const ActorIndex watcher : actors_[index].watchers)
    schedule(when, {.kind = Pending::Kind::down,
                    .actor = watcher,
                    .launch = actors_[watcher].launch,
                    .other = actors_[index].address,
                    .number = unreachable,
                    .connection = index,
                    .other_launch = actors_[index].launch});
}

void Simulator::restart(Address address, std::shared_ptr<Role> role) {
  if (options_.events && index_.find(address) == AddressMap::kNone) add(address, nullptr);
  const ActorIndex index = index_of(address);
  Actor& actor = actors_[index];
  LW_CHECK(!actor.role, address, "is alive");
  actor.role = std::move(role);
  actor.elsewhere = false;
  ++actor.launch;
  actor.end_reason.reset();
  actor.absence = 0;
  observers_.restarted(now_, address);
  update_absence(index);
  guarded(index, [](Role& started, Outbox& box) { started.on_start(box); });
}

void Simulator::take_over(ActorIndex self, Address address) {
  // The earlier actor may be on another host.
  if (options_.events && index_.find(address) == AddressMap::kNone) add(address, nullptr);
  const ActorIndex earlier = index_of(address);
  LW_CHECK(earlier != self, address);
  actors_[self].watchers = std::exchange(actors_[earlier].watchers, {});
  end(earlier, "its standby takes over");  // it may live, and only be unreachable
  std::swap(actors_[self].address, actors_[earlier].address);
  actors_[self].recorded = actors_[earlier].recorded;
  index_.set(address, self);
  index_.set(actors_[earlier].address, earlier);
  actors_[earlier].elsewhere = options_.events != nullptr;
  actors_[self].elsewhere = false;
  if (options_.events) options_.events->on_take_over(ShardId(address.index));
  observers_.restarted(now_, address);
  if (!options_.events) report_link(address);
}

void Simulator::kill(Address address, const EndReason& reason) {
  const ActorIndex found = index_.find(address);
  if (found != AddressMap::kNone) end(found, reason);
}

std::optional<EndReason> Simulator::end_reason(Address address) const {
  const ActorIndex found = index_.find(address);
  return found == AddressMap::kNone ? std::nullopt : actors_[found].end_reason;
}

std::string Simulator::who_waits() const {
  std::map<Address, const Role*> roles;
  for (const auto& actor : actors_)
    if (actor.role) roles[actor.address] = actor.role.get();
  return sim::who_waits(roles);
}

}  // namespace leeway::sim
