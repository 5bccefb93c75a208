#pragma once
// Simulator::Threads: what the threads of simulated nodes do, as those of the local host.
//
// A worker has a thread of its own, on which it also computes. All other actors of a node share a
// pool of as many threads as it has cores, with the long work that they hand out. An actor handles
// one thing at a time: a message, a timer or what it has computed takes the world's `message` of a
// core, and its handler is called when that is over. Small work is done on the spot, before the
// next message. A thread that sleeps is woken within the latency; one that works finds what has
// come meanwhile.
#include <vector>

#include "sim/cold_cache_penalty.hpp"
#include "sim/shared_cores.hpp"
#include "sim/simulator.hpp"

namespace leeway::sim {

class Simulator::Threads {
 public:
  explicit Threads(Simulator& simulator) : simulator_(simulator) {}

  void add_node();
  /// Its node has been added.
  void add_actor();

  /// True while a thread works for the actor, or will.
  bool awake(ActorIndex actor) const { return actors_[actor].awake; }
  /// Something has reached an actor.
  void receive(Pending event);
  /// A part of a task is to be computed, where the actor's work is.
  void compute(std::uint32_t task);
  /// The cores of a node have something to tell, if `version` is still theirs.
  void look(NodeIndex node, std::uint32_t version);

 private:
  using Thread = SharedCores::Thread;
  struct ActorState {
    Fifo<Pending> mailbox;
    Fifo<std::uint32_t> small;  // tasks to do on the spot
    bool awake = false;
    Thread own = 0;  // of a worker
  };
  /// What a thread of the pool does next: an actor's turn, or a part of a task.
  struct Turn {
    ActorIndex actor = 0;
    std::optional<std::uint32_t> task;
  };
  struct ThreadState {
    Turn turn;
    std::optional<Pending> event;       // that is handled when the time of a message is over
    std::optional<std::uint32_t> task;  // that is computed
    Instant began;
    std::optional<Instant> rests_since;  // while it has nothing to do
    ColdCachePenalty penalty;
  };
  struct NodeState {
    SharedCores cores;
    std::vector<ThreadState> threads;  // by their numbers in `cores`
    std::vector<Thread> idle;          // of the pool
    Fifo<Turn> turns;
    std::uint32_t version = 0;
  };

  bool has_own_thread(ActorIndex actor) const {
    return simulator_.actors_[actor].address.kind == RoleKind::worker;
  }
  NodeState& node_of(ActorIndex actor) { return nodes_[simulator_.actors_[actor].node]; }
  /// The actor has something to do.
  void wake(ActorIndex actor);
  void take_turns(NodeState& node);
  /// Begins what comes next in a turn; false when there is nothing (more).
  bool begin(NodeState& node, Thread thread, const Turn& turn);
  bool begin_next(Thread thread, ActorIndex actor);
  bool begin_event(Thread thread, Pending event);
  void begin_task(Thread thread, std::uint32_t task, Duration besides);
  void finish(NodeState& node, Thread thread);
  void part_computed(const ThreadState& thread, std::uint32_t task);
  void plan_look(NodeIndex node);
  /// What the thread's next work takes that takes `time` when it is warm.
  Duration prolonged(ThreadState& thread, Duration time) const;

  Simulator& simulator_;
  std::vector<ActorState> actors_;
  std::vector<NodeState> nodes_;
};

}  // namespace leeway::sim
