#pragma once
// Simulator::Threads: the threads of simulated nodes, which behave like those of the local host.
//
// Each worker has its own thread and computes on it. The other actors of a node share a pool with
// one thread per core, which also does their long work. An actor handles one event at a time. A
// message, a timer or a completed part takes the world's `message` of core time, and the handler is
// called at its end. Small work runs at once, before the next event. A message wakes a sleeping
// thread after the latency; a busy thread finds it in its mailbox.
#include <vector>

#include "sim/cold_cache_penalty.hpp"
#include "sim/shared_cores.hpp"
#include "sim/simulator.hpp"

namespace leeway::sim {

class Simulator::Threads {
 public:
  explicit Threads(Simulator& simulator) : simulator_(simulator) {}

  void add_node();
  /// Requires that the actor's node was added.
  void add_actor();

  /// True while a thread runs the actor or is scheduled to.
  bool awake(ActorIndex actor) const { return actors_[actor].awake; }
  /// Puts an event into its actor's mailbox.
  void receive(Pending event);
  /// Schedules the next part of a task on the worker's thread or the pool.
  void compute(std::uint32_t task);
  /// Handles threads of a node that have finished their work. Ignores an outdated `version`.
  void handle_cores(MachineIndex node, std::uint32_t version);

 private:
  using Thread = SharedCores::Thread;
  struct ActorState {
    Fifo<Pending> mailbox;
    Fifo<std::uint32_t> small;  // tasks that precede the mailbox
    bool awake = false;
    Thread own = 0;  // of a worker
  };
  /// A job of the pool: an actor's mailbox, or a part of a task.
  struct Turn {
    ActorIndex actor = 0;
    std::optional<std::uint32_t> task;
  };
  struct ThreadState {
    Turn turn;
    std::optional<Pending> event;       // being handled
    std::optional<std::uint32_t> task;  // being computed
    Instant began;
    std::optional<Instant> rests_since;  // while the thread sleeps
    ColdCachePenalty penalty;
  };
  struct NodeState {
    SharedCores cores;
    std::vector<ThreadState> threads;  // by number in `cores`
    std::vector<Thread> idle;          // of the pool
    Fifo<Turn> turns;
    std::uint32_t version = 0;
  };

  bool has_own_thread(ActorIndex actor) const {
    return simulator_.actors_[actor].address.kind == RoleKind::worker;
  }
  NodeState& node_of(ActorIndex actor) { return nodes_[simulator_.actors_[actor].node]; }
  /// Schedules the actor if it sleeps.
  void wake(ActorIndex actor);
  void take_turns(NodeState& node);
  /// Begins the next item of a turn; false if no item is left.
  bool begin(NodeState& node, Thread thread, const Turn& turn);
  bool begin_next(Thread thread, ActorIndex actor);
  bool begin_event(Thread thread, Pending event);
  void begin_task(Thread thread, std::uint32_t task, Duration handling);
  void finish(NodeState& node, Thread thread);
  void part_computed(const ThreadState& thread, std::uint32_t task);
  void schedule_cores(MachineIndex node);
  /// The duration of the thread's next work, which takes `time` on a warm thread.
  Duration prolonged(ThreadState& thread, Duration time) const;

  Simulator& simulator_;
  std::vector<ActorState> actors_;
  std::vector<NodeState> nodes_;
};

}  // namespace leeway::sim
