#pragma once
// Simulator: a host that runs the same roles as the others, on one thread, in virtual time.
//
// A queue of events, ordered by time and then by when they were asked for, and one seed. Nothing
// here reads the clock of the system, starts a thread, or depends on an address or the order of a
// hash table, so a seed gives the same run every time. Gradients are computed for real, when their
// computation begins in virtual time; their results are seen when it ends.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/address_map.hpp"
#include "sim/due_queue.hpp"
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

  /// Before start(): puts a role under its address.
  void add(Address address, std::shared_ptr<Role> role);
  /// Starts all roles.
  void start();
  /// Does what is due next; false when there is nothing left to do.
  bool step();
  /// Sends as the host itself.
  void send(Address to, Message message);
  /// Ends an actor, as if its process had died.
  void kill(Address actor, const std::string& reason);
  /// Starts a new life of an actor that has ended, as if its process had been started again. Its
  /// messages, timers and computations of before are lost.
  void restart(Address actor, std::shared_ptr<Role> role);
  /// The run came to its end: observers look at what is left.
  void conclude(const RunTotals& totals) { observers_.run_ended(totals); }

  Instant now() const { return now_; }
  /// How long nobody but the monitor has been told anything and nothing has been computed: when
  /// that grows without end, all wait for each other.
  Duration idle() const { return tasks_.empty() ? now_ - busy_ : Duration{}; }
  /// What a role threw, when it has ended; empty while it lives.
  std::string end_reason(Address address) const;
  /// For a run that no longer moves: where scheduler and shards stand.
  std::string who_waits() const;
  const Trace& trace() const { return trace_; }

 private:
  class Box;
  struct Actor {
    Address address;
    NodeIndex node = 0;
    std::shared_ptr<Role> role;  // null once it has ended
    std::uint32_t life = 1;      // counts restarts: what was meant for an earlier life is lost
    std::unique_ptr<Box> box;
    std::string end_reason;
    std::vector<ActorIndex> watchers;
  };
  /// A work under way.
  struct Task {
    ActorIndex actor = 0;
    std::uint32_t life = 0;
    std::shared_ptr<Work> work;
    int part = 0;
    Slowdown slow_down;
  };
  struct Pending {
    enum class Kind : std::uint8_t { message, timer, core_free, part_done, down };
    Kind kind{};
    ActorIndex actor = 0;    // whom it concerns
    std::uint32_t life = 0;  // and in which of its lives
    Address other;           // who has ended
    Letter letter;
    std::uint64_t number = 0;  // timer's token, or task
  };

  void schedule(Instant at, Pending event);
  void deliver(ActorIndex from, Address from_address, NodeIndex from_node, Address to,
               Message message);
  bool lives(ActorIndex actor, std::uint32_t life) const {
    return actors_[actor].role && actors_[actor].life == life;
  }
  void begin_part(std::uint32_t task);
  void end_part(std::uint32_t task);
  void release_core(NodeIndex node);
  template <class Handler>
  void guarded(ActorIndex actor, Handler handler);
  void end(ActorIndex actor, const std::string& reason);

  Options options_;
  Network network_;
  ComputeModel compute_;
  Trace trace_;
  Observers observers_;
  std::vector<Actor> actors_;
  AddressMap index_;          // in actors_
  std::vector<Cores> cores_;  // by node
  DueQueue due_;              // of pending_
  Slots<Pending> pending_;
  Slots<Task> tasks_;
  Instant now_;
  Instant
      busy_;  // the last time that an actor other than the monitor was told or computed anything
};

}  // namespace leeway::sim
