#include "sim/simulator_threads.hpp"

#include "sim/chance.hpp"

namespace leeway::sim {

void Simulator::Threads::add_node() {
  const World& world = simulator_.options_.world;
  nodes_.push_back({SharedCores(world.cores, world.slice, world.contention), {}, {}, {}, 0});
  NodeState& node = nodes_.back();
  for (std::uint32_t i = 0; i < world.cores; ++i) {
    node.idle.push_back(node.cores.add_thread());
    node.threads.emplace_back();
  }
}

void Simulator::Threads::add_actor() {
  const auto actor = static_cast<ActorIndex>(actors_.size());
  actors_.emplace_back();
  if (!has_own_thread(actor)) return;
  NodeState& node = node_of(actor);
  actors_.back().own = node.cores.add_thread();
  node.threads.push_back({.turn = {actor, {}},
                          .event = {},
                          .task = {},
                          .began = {},
                          .rests_since = {},
                          .penalty = {}});
}

// ---- turns ----

void Simulator::Threads::receive(Pending event) {
  const ActorIndex actor = event.actor;
  actors_[actor].mailbox.push_back(std::move(event));
  wake(actor);
}

void Simulator::Threads::compute(std::uint32_t number) {
  const Task& task = simulator_.tasks_.at(number);
  const ActorIndex actor = task.actor;
  if (has_own_thread(actor)) {
    // The part queues in the mailbox, so that messages are handled between the parts of long work.
    receive({.kind = Pending::Kind::part, .actor = actor, .launch = task.launch, .number = number});
  } else if (is_small(*task.work)) {
    actors_[actor].small.push_back(number);
    wake(actor);
  } else {
    NodeState& node = node_of(actor);
    node.turns.push_back({actor, number});
    take_turns(node);
    schedule_cores(simulator_.actors_[actor].node);
  }
}

void Simulator::Threads::wake(ActorIndex actor) {
  ActorState& state = actors_[actor];
  if (state.awake) return;
  state.awake = true;
  if (has_own_thread(actor)) {
    state.awake = begin_next(state.own, actor);
  } else {
    node_of(actor).turns.push_back({actor, {}});
    take_turns(node_of(actor));
  }
  schedule_cores(simulator_.actors_[actor].node);
}

void Simulator::Threads::take_turns(NodeState& node) {
  while (!node.idle.empty() && !node.turns.empty()) {
    const Turn turn = node.turns.front();
    node.turns.pop_front();
    const Thread thread = node.idle.back();
    node.idle.pop_back();
    if (!begin(node, thread, turn)) node.idle.push_back(thread);
  }
}

// ---- execution ----

bool Simulator::Threads::begin(NodeState& node, Thread thread, const Turn& turn) {
  node.threads[thread].turn = turn;
  if (!turn.task) return actors_[turn.actor].awake = begin_next(thread, turn.actor);
  begin_task(thread, *turn.task, {});
  return true;
}

bool Simulator::Threads::begin_next(Thread thread, ActorIndex actor) {
  ActorState& state = actors_[actor];
  if (!state.small.empty()) {
    const std::uint32_t task = state.small.front();
    state.small.pop_front();
    begin_task(thread, task, {});
    return true;
  }
  while (!state.mailbox.empty()) {
    Pending event = std::move(state.mailbox.front());
    state.mailbox.pop_front();
    if (begin_event(thread, std::move(event))) return true;
  }
  return false;
}

bool Simulator::Threads::begin_event(Thread thread, Pending event) {
  if (simulator_.waits(event)) {
    simulator_.actors_[event.actor].waiting.push_back(std::move(event));
    return false;
  }
  const Duration message = simulator_.options_.world.message;
  if (event.kind == Pending::Kind::part) {
    begin_task(thread, static_cast<std::uint32_t>(event.number), message);
    return true;
  }
  NodeState& node = node_of(event.actor);
  ThreadState& state = node.threads[thread];
  state.event = std::move(event);
  node.cores.work(thread, prolonged(state, message), simulator_.now_);
  return true;
}

/// `handling` is the core time for the event before the computation.
void Simulator::Threads::begin_task(Thread thread, std::uint32_t task, Duration handling) {
  NodeState& node = node_of(simulator_.tasks_.at(task).actor);
  const Duration time = simulator_.perform(task);
  ThreadState& state = node.threads[thread];
  state.task = task;
  state.began = simulator_.now_;
  node.cores.work(thread, prolonged(state, time + handling), simulator_.now_);
}

Duration Simulator::Threads::prolonged(ThreadState& thread, Duration time) const {
  if (thread.rests_since) thread.penalty.rest(simulator_.now_ - *thread.rests_since);
  thread.rests_since.reset();
  return scaled(time, 1 + simulator_.options_.world.cold * thread.penalty.work(time));
}

void Simulator::Threads::finish(NodeState& node, Thread thread) {
  ThreadState done = std::move(node.threads[thread]);
  node.threads[thread] = {.turn = done.turn,
                          .event = {},
                          .task = {},
                          .began = {},
                          .rests_since = {},
                          .penalty = done.penalty};
  const ActorIndex actor = done.turn.actor;
  if (done.task) {
    part_computed(done, *done.task);
  } else {
    Pending event = std::move(*done.event);
    if (simulator_.waits(event))
      simulator_.actors_[actor].waiting.push_back(std::move(event));
    else
      simulator_.handle(event);
  }
  if (!done.turn.task && begin_next(thread, actor)) return;
  if (!done.turn.task) actors_[actor].awake = false;
  if (!has_own_thread(actor)) {
    while (!node.turns.empty()) {
      const Turn turn = node.turns.front();
      node.turns.pop_front();
      if (begin(node, thread, turn)) return;
    }
    node.idle.push_back(thread);
  }
  node.threads[thread].rests_since = simulator_.now_;
  node.cores.sleep(thread, simulator_.now_);
}

void Simulator::Threads::part_computed(const ThreadState& thread, std::uint32_t number) {
  const World& world = simulator_.options_.world;
  const Task& task = simulator_.tasks_.at(number);
  const ActorIndex actor = task.actor;
  const bool on_pool = thread.turn.task.has_value();
  if (!on_pool && task.slow_down == Slowdown{}) return simulator_.end_part(number);
  Duration delay;
  if (on_pool) {
    if (!awake(actor)) delay = world.local_latency;
  } else {
    // A straggler's delay occupies no core.
    const Duration took = simulator_.now_ - thread.began - world.message;
    delay = scaled(took, task.slow_down.factor - 1);
    simulator_.compute_.count_delay(simulator_.actors_[actor].address, delay, task.part == 0);
    delay += world.timer;
    if (task.part == 0) delay += task.slow_down.extra;
  }
  simulator_.schedule(
      simulator_.now_ + delay,
      {.kind = Pending::Kind::part_done, .actor = actor, .launch = task.launch, .number = number});
}

// ---- time ----

void Simulator::Threads::handle_cores(MachineIndex node, std::uint32_t version) {
  if (nodes_[node].version != version) return;
  while (const auto thread = nodes_[node].cores.finished(simulator_.now_))
    finish(nodes_[node], *thread);
  schedule_cores(node);
}

void Simulator::Threads::schedule_cores(MachineIndex node) {
  NodeState& state = nodes_[node];
  ++state.version;
  if (const auto next = state.cores.next())
    simulator_.schedule(
        *next,
        {.kind = Pending::Kind::cores, .actor = 0, .number = node, .connection = state.version});
}

}  // namespace leeway::sim
