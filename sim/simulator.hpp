#pragma once
// Simulator: a host that runs the same roles as the others, on one thread, in virtual time.
//
// A queue of events, ordered by time and then by when they were asked for, and one seed. Nothing
// here reads the clock of the system, starts a thread, or depends on an address or the order of a
// hash table, so a seed gives the same run every time. Gradients are computed for real, when their
// computation begins in virtual time; their results are seen when it ends.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/check.hpp"
#include "sim/address_map.hpp"
#include "sim/due_queue.hpp"
#include "sim/links.hpp"
#include "sim/machine.hpp"
#include "sim/network.hpp"
#include "sim/observers.hpp"
#include "sim/slots.hpp"
#include "sim/trace.hpp"

namespace leeway::sim {

class Simulator {
 public:
  struct Options {
    std::uint64_t seed = 1;
    World world;
    std::vector<plan::Straggler> stragglers;
    Trace::Options trace;
    /// Called for every event; may be empty.
    std::function<void(Address, Instant, const Event&)> on_event;
    /// Told of everything, in this order. What they throw ends the run: see Violation.
    std::vector<std::shared_ptr<Observer>> observers;
  };

  explicit Simulator(Options options);
  ~Simulator();
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;

  /// Before start(): puts a role under its address. Null when nobody is there yet: restart() begins
  /// its first life.
  void add(Address address, std::shared_ptr<Role> role);
  /// Starts all roles.
  void start();
  /// Does what is due next; false when there is nothing left to do.
  bool step();
  /// Sends as the host itself.
  void send(Address to, Message message);
  /// Ends an actor, as if its process had died.
  void kill(Address actor, const EndReason& reason);
  /// Starts a new life of an actor that has ended, as if its process had been started again. Its
  /// messages, timers and computations of before are lost.
  void restart(Address actor, std::shared_ptr<Role> role);

  // What goes wrong. Faults (sim/faults) use these; so may a program of its own.

  /// Calls `action` at that time, and between two events.
  void at(Instant time, std::function<void()> action);
  /// The actor does nothing until it thaws: what reaches it meanwhile waits. Counted, as are holds.
  void freeze(Address actor);
  void thaw(Address actor);
  /// Messages from one to the other wait until the link is released.
  void hold(Address from, Address to);
  void release(Address from, Address to);
  /// Lets the oldest message that waits go on its way, and no other; false when none waits.
  bool release_one(Address from, Address to);
  /// What is on its way between the two is lost, and what they send, until the connection is
  /// mended; then both are told.
  void sever(Address a, Address b);
  void mend(Address a, Address b);
  /// Messages take so much longer; a negative time takes that back.
  void delay(Address from, Address to, Duration extra);
  /// The links of the actor's node are slower by the factor.
  void slow_link(Address actor, double factor);
  void restore_link(Address actor, double factor);
  /// The clock of the actor's node stands still: now() stays, and no timer rings.
  void stop_clock(Address actor);
  void start_clock(Address actor);

  bool lives(Address actor) const;
  /// Of all actors, in the order in which they were added.
  std::vector<Address> addresses() const;
  const World& world() const { return options_.world; }

  /// The run came to its end: observers look at what is left.
  void conclude(const RunTotals& totals) { observers_.run_ended(totals); }

  Instant now() const { return now_; }
  /// How long nobody but the monitor has been told anything and nothing has been computed: when
  /// that grows without end, all wait for each other.
  Duration idle() const { return tasks_.empty() && actions_.empty() ? now_ - busy_ : Duration{}; }
  /// What a role threw, when it has ended; empty while it lives.
  std::optional<EndReason> end_reason(Address address) const;
  /// For a run that no longer moves: where scheduler and shards stand.
  std::string who_waits() const;
  const Trace& trace() const { return trace_; }

 private:
  class Box;
  class Threads;
  struct Pending {
    enum class Kind : std::uint8_t {
      message,
      timer,
      core_free,
      part_done,
      down,
      linked,  // the connection to `other` has been mended
      action,
      absent,  // is the actor still out of reach?
      cores,   // of node `number` have something to tell
      part,    // of task `number` is to be computed by a thread of the actor's own
    };
    Kind kind{};
    ActorIndex actor = 0;    // whom it concerns
    std::uint32_t life = 0;  // and in which of its lives
    Address other;           // who has ended
    Letter letter;
    std::uint64_t number = 0;  // timer's token, task, action, absence; of `down`: it only seems so
    std::uint32_t connection = 0;  // that a message was sent over; version of `cores`
    std::uint32_t other_life = 0;  // of `down`: the life that has ended
  };
  struct Actor {
    Address address;
    NodeIndex node = 0;
    std::shared_ptr<Role> role;  // null once it has ended
    std::uint32_t life = 1;      // counts restarts: what was meant for an earlier life is lost
    std::unique_ptr<Box> box;
    std::optional<EndReason> end_reason;
    std::vector<ActorIndex> watchers;  // each once
    std::uint32_t freezes = 0;
    std::vector<Pending> waiting;    // what came while it was frozen, or its clock stood still
    std::uint64_t out_of_reach = 0;  // number of the present absence; 0: the scheduler hears it
  };
  /// A work under way.
  struct Task {
    ActorIndex actor = 0;
    std::uint32_t life = 0;
    std::shared_ptr<Work> work;
    int part = 0;
    Slowdown slow_down;
  };

  void schedule(Instant at, Pending event);
  void deliver(ActorIndex from, Address from_address, NodeIndex from_node, Address to,
               Message message);
  /// Sends on what a link has kept.
  void forward(ActorIndex from, ActorIndex to, Letter letter);
  bool lives(ActorIndex actor, std::uint32_t life) const {
    return actors_[actor].role && actors_[actor].life == life;
  }
  /// Computes the next part of a task now, whatever becomes of its actor; what that takes on a
  /// core.
  Duration perform(std::uint32_t task);
  void begin_part(std::uint32_t task);
  void end_part(std::uint32_t task);
  void release_core(NodeIndex node);
  template <class Handler>
  void guarded(ActorIndex actor, Handler handler);
  void end(ActorIndex actor, const EndReason& reason);
  /// Whoever watches it is told, after a while, that it has ended, or seems to have.
  void tell_watchers(ActorIndex actor, Instant when, bool seems);
  /// Hands an event to the actor that it concerns, which lives and is not frozen.
  void handle(Pending& event);
  void handle_message(Pending& event);
  /// True when the event has to wait for its actor.
  bool waits(const Pending& event) const;
  void resume(ActorIndex actor);
  void linked(ActorIndex actor, Address peer);
  /// Begins or ends an absence, after something has changed between the actor and the scheduler.
  void look_for(ActorIndex actor);
  bool out_of_reach(ActorIndex actor) const;
  /// Of an actor that was added.
  ActorIndex index_of(Address address) const {
    const ActorIndex index = index_.find(address);
    LW_CHECK(index != AddressMap::kNone, address);
    return index;
  }
  Instant node_time(NodeIndex node) const {
    return clocks_[node].stops > 0 ? clocks_[node].stands_at : now_;
  }

  Options options_;
  Network network_;
  Links links_;
  ComputeModel compute_;
  Trace trace_;
  Observers observers_;
  std::vector<Actor> actors_;
  AddressMap index_;          // in actors_
  std::vector<Cores> cores_;  // by node
  struct Clocks {
    std::uint32_t stops = 0;
    Instant stands_at;  // while it is stopped
  };
  std::vector<Clocks> clocks_;  // by node
  DueQueue due_;                // of pending_
  Slots<Pending> pending_;
  Slots<Task> tasks_;
  std::unique_ptr<Threads> threads_;  // none, where actors take no time but for what they compute
  std::map<std::uint64_t, std::function<void()>> actions_;
  std::uint64_t next_action_ = 0, next_absence_ = 1;
  Instant now_;
  Instant
      busy_;  // the last time that an actor other than the monitor was told or computed anything
};

}  // namespace leeway::sim
