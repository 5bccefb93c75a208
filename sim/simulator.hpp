#pragma once
// Simulator: a host that runs roles on one thread, in virtual time.
//
// It is a queue of events, ordered by time and then by insertion. It reads no system clock, starts
// no thread and depends on no pointer value or hash order, so the seed determines the run.
// Gradients are computed when their computation begins in virtual time. Roles see the results when
// it ends.
//
// It hosts all actors of a run, or those of one process of a simulated cluster (sim/cluster).
//
// The queue is Leeway's own, because packaged simulators such as ns-3 and SimGrid run programs that
// are written against their nodes or actors; here the roles that ship run unchanged, under a seed.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/cluster/actor_host.hpp"
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

class Simulator final : public ActorHost {
 public:
  struct Options {
    std::uint64_t seed = 1;
    World world;
    std::vector<plan::Straggler> stragglers;
    std::vector<Iteration> first_iterations;     // of each worker; empty: 0
    std::shared_ptr<Disturbances> disturbances;  // counts what the stragglers do; may be null
    Trace::Options trace;
    /// Called for every event; may be empty.
    std::function<void(Address, Instant, const Event&)> on_event;
    /// Called after each message that an actor sends; may be empty. If true, the actor's process
    /// is lost at once, in the middle of the handler: what the handler does after it has no effect.
    std::function<bool(Address from, Address to, const Message&)> ends_after = {};
    /// Called in this order. Their exceptions end the run; see Violation.
    std::vector<std::shared_ptr<Observer>> observers;

    // For one host of several.
    Instant clock_began;  // Outbox::now() counts from here
    ActorHostEvents* events = nullptr;
    std::shared_ptr<Observers> shared_observers;  // of all hosts, instead of `observers`
    std::shared_ptr<Presence> presence;
    Trace* shared_trace = nullptr;  // of all hosts, instead of `trace`
  };

  explicit Simulator(Options options);
  ~Simulator() override;
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;

  /// Adds an actor; requires that start() was not called. If the role is null, the actor is absent
  /// until restart().
  void add(Address address, std::shared_ptr<Role> role) override;
  /// Starts all roles.
  void start() override;
  /// Handles the next event; false if no event is left.
  bool step();
  /// Sends a message from the host.
  void send(Address to, Message message);
  /// Ends an actor, as if its process had died.
  void kill(Address actor, const EndReason& reason) override;
  /// Restarts an actor that has ended, as if its process had been started again. Its earlier
  /// messages, timers and computations are lost.
  void restart(Address actor, std::shared_ptr<Role> role) override;

  // For one host of several.

  void deliver(Address from, Address to, Message message) override;
  void report_down(Address watcher, Address ended, const EndReason& reason) override;
  void forget(Address actor, const EndReason& reason) override;
  void report_link(Address peer) override;
  /// The time of the next event; none if there is none.
  std::optional<Instant> next_at() const {
    return due_.empty() ? std::nullopt : std::optional(due_.next_at());
  }
  /// Sets the time. Events that were due before happen now.
  void advance(Instant now) { now_ = std::max(now_, now); }

  // Faults, for sim/faults and for stories. Except for kill(), an address names the machine on
  // which the actor began; a standby that takes over the address is on another.

  /// Calls `action` at that time, between two events.
  void at(Instant time, std::function<void()> action);
  /// The actor does nothing until it thaws, and its events wait. Freezes nest, as do holds.
  void freeze(Address actor);
  void thaw(Address actor);
  /// Messages in this direction wait until the link is released.
  void hold(Address from, Address to);
  void release(Address from, Address to);
  /// Sends only the oldest waiting message; false if no message waits.
  bool release_one(Address from, Address to);
  /// Messages in flight between the two are lost, and so are all that they send until mend(). Then
  /// both roles get on_link.
  void sever(Address a, Address b);
  void mend(Address a, Address b);
  /// Adds to the latency of messages in this direction. A negative value undoes a delay.
  void delay(Address from, Address to, Duration extra);
  /// The link of the actor's node takes `factor` times as long per byte.
  void slow_link(Address actor, double factor);
  void restore_link(Address actor, double factor);
  /// Stops the clock of the actor's node: now() is constant, and no timer fires.
  void stop_clock(Address actor);
  void start_clock(Address actor);

  bool lives(Address actor) const override;
  /// The addresses of all actors, in the order of add().
  std::vector<Address> addresses() const;
  const World& world() const { return options_.world; }

  /// Reports the end of the run to the observers.
  void conclude(const RunTotals& totals) { observers_.run_ended(totals); }

  Instant now() const { return now_; }
  /// The time since the last computation, or message between actors other than the monitor.
  /// It grows without bound in a deadlock.
  Duration idle() const { return tasks_.empty() && actions_.empty() ? now_ - busy_ : Duration{}; }
  /// Why an actor has ended; empty while it lives.
  std::optional<EndReason> end_reason(Address address) const;
  /// The states of scheduler and shards, for a report of a deadlock.
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
      report,  // number `number`: an actor of another host has ended
      absent,  // the detection time is over: is the actor still unreachable?
      cores,   // a thread of node `number` finishes its work or its slice
      part,    // of task `number`, for a worker's own thread to compute
    };
    Kind kind{};
    ActorIndex actor = 0;      // the receiver
    std::uint32_t launch = 0;  // of the receiver
    Address other;             // the actor that has ended, or the peer of a mended connection
    Letter letter;
    /// Token, task, report, action, node or absence; of `down`: 1 if unreachable.
    std::uint64_t number = 0;
    /// Of a message; of `cores`: the version; of `down`: the actor that has ended.
    std::uint32_t connection = 0;
    std::uint32_t other_launch = 0;  // of `down`: the launch that has ended
  };
  struct Actor {
    Address address;
    MachineIndex node = 0;
    std::shared_ptr<Role> role;  // null once it has ended
    bool elsewhere = false;      // its present launch is on another host
    std::uint32_t launch = 1;    // counts starts; events of earlier launches are dropped
    std::unique_ptr<Box> box;
    std::optional<EndReason> end_reason;
    std::vector<ActorIndex> watchers;  // distinct
    std::uint64_t recorded = 0;        // number of the last record of a replicated role
    std::uint32_t freezes = 0;
    std::vector<Pending> waiting;  // events of a frozen actor, timers of a stopped clock
    std::uint64_t absence = 0;     // number of the present absence; 0: the scheduler hears it
  };
  /// Work in progress.
  struct Task {
    ActorIndex actor = 0;
    std::uint32_t launch = 0;
    std::shared_ptr<Work> work;
    int part = 0;
    Slowdown slow_down;
  };

  void schedule(Instant at, Pending event);
  void deliver(ActorIndex from, Address from_address, MachineIndex from_node, Address to,
               Message message);
  /// Sends a message that a link has kept.
  void forward(ActorIndex from, ActorIndex to, Letter letter);
  bool lives(ActorIndex actor, std::uint32_t launch) const {
    return actors_[actor].role && actors_[actor].launch == launch;
  }
  /// Computes the next part of a task and returns its duration on a core; 0 if the actor has ended.
  Duration perform(std::uint32_t task);
  void begin_part(std::uint32_t task);
  void begin_disk_work(std::uint32_t task);
  void end_part(std::uint32_t task);
  void release_core(MachineIndex node);
  /// The actor takes over the address of another, which ends.
  void take_over(ActorIndex self, Address address);
  template <class Handler>
  void guarded(ActorIndex actor, Handler handler);
  void end(ActorIndex actor, const EndReason& reason);
  /// Schedules on_down for all watchers: the actor has ended, or is unreachable.
  void notify_watchers(ActorIndex actor, Instant when, bool unreachable);
  /// Hands an event to its actor unless that has ended. Requires that the event does not wait.
  void handle(Pending& event);
  void handle_message(Pending& event);
  /// Whether the event waits for a frozen actor or a stopped clock.
  bool waits(const Pending& event) const;
  void resume(ActorIndex actor);
  void linked(ActorIndex actor, Address peer);
  /// Begins or ends an absence after a change between the actor and the scheduler.
  void update_absence(ActorIndex actor);
  bool is_unreachable(ActorIndex actor) const;
  /// The actor, unless its present launch is on another host.
  ActorIndex find_here(Address address) const {
    const ActorIndex index = index_.find(address);
    return index != AddressMap::kNone && actors_[index].elsewhere ? AddressMap::kNone : index;
  }
  /// Requires that the actor was added.
  ActorIndex index_of(Address address) const {
    const ActorIndex index = index_.find(address);
    LW_CHECK(index != AddressMap::kNone, address);
    return index;
  }
  /// For faults, which stay with the machine: the actor that was added with the address.
  ActorIndex machine_of(Address address) const {
    const ActorIndex index = machines_.find(address);
    LW_CHECK(index != AddressMap::kNone, address);
    return index;
  }
  /// The node of a new actor, which may be new too.
  MachineIndex node_for(Address address);
  Instant node_time(MachineIndex node) const {
    const Instant at = clocks_[node].stops > 0 ? clocks_[node].stopped_at : now_;
    return Instant{at.ns - options_.clock_began.ns};
  }

  Options options_;
  Network network_;
  Links links_;
  ComputeModel compute_;
  Trace own_trace_;
  Trace& trace_;  // own, or shared
  HostObservers observers_;
  std::vector<Actor> actors_;
  AddressMap index_;                                    // into actors_
  AddressMap machines_;                                 // the same, by the addresses of add()
  std::map<std::uint32_t, MachineIndex> shared_nodes_;  // of workers, and with pairs of shards
  std::vector<Cores> cores_;                            // by node
  struct Clocks {
    std::uint32_t stops = 0;
    Instant stopped_at;  // its time while it is stopped
  };
  std::vector<Clocks> clocks_;  // by node
  DueQueue due_;                // of pending_
  Slots<Pending> pending_;
  Slots<Task> tasks_;
  std::unique_ptr<Threads> threads_;  // null if handling a message takes no time
  std::map<std::uint64_t, std::function<void()>> actions_;
  std::map<std::uint64_t, EndReason> reports_;
  std::uint64_t next_action_ = 0, next_absence_ = 1, next_report_ = 0;
  Instant now_;
  Instant busy_;  // time of the last message (without the monitor's) or computation
};

}  // namespace leeway::sim
