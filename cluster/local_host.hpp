#pragma once
// LocalHost: runs roles as actors on threads of this process.
//
// Each worker has a thread, on which it also computes. All other roles, and the long work that they
// hand out, share a pool with one thread for each core. A role that throws ends, and its watchers
// receive the exception's text.
#include <functional>
#include <memory>
#include <optional>

#include "actors/outbox.hpp"
#include "messages/message_log.hpp"
#include "plan/plan.hpp"
#include "policies/straggler/disturbances.hpp"

namespace leeway {

class LocalHost {
 public:
  struct Options {
    std::uint64_t seed = 1;
    unsigned pool_threads = 0;  // 0: one a core
    std::vector<plan::Straggler>
        stragglers;  // slow down the work of these workers by making its results arrive later
    std::vector<Iteration> first_iterations;     // of each worker; empty: 0
    std::shared_ptr<Disturbances> disturbances;  // counts what the stragglers do; may be null
    /// Called for every event, from many threads at once; may be empty.
    std::function<void(Address, Instant, const Event&)> on_event;

    /// Called for every message that reaches an actor, likewise.
    OnMessage on_message;

    // For one host of several; empty if there are no others. Actors' threads call them, and they
    // return soon. on_end is called under a lock and must not call a host.
    /// Sends a message to an actor of another host.
    std::function<void(Address from, Address to, Message)> send_out;
    /// An actor here watches one of another host: see report_down.
    std::function<void(Address watcher, Address watched)> watch_out;
    /// An actor has ended, by itself or by kill().
    std::function<void(Address, const EndReason& reason)> on_end;
  };

  explicit LocalHost(Options options);
  /// Ends all actors and waits for them.
  ~LocalHost();
  LocalHost(const LocalHost&) = delete;
  LocalHost& operator=(const LocalHost&) = delete;

  /// Before start(): puts a role under its address. With null, restart() begins the first life.
  void add(Address address, std::shared_ptr<Role> role);
  /// Starts all roles.
  void start();
  /// Sends as the host itself.
  void send(Address to, Message message);
  /// Delivers a message from an actor of another host.
  void deliver(Address from, Address to, Message message);
  /// Reports to an actor that one of another host has ended.
  void report_down(Address watcher, Address ended, const EndReason& reason);
  /// Ends a worker, as if its process had died. Its computation is finished, and the result lost.
  void kill(Address worker, const EndReason& reason);
  /// Begins the next life of a worker that has ended.
  void restart(Address worker, std::shared_ptr<Role> role);
  /// From now on the worker is on another host: ends it here, and sends its messages out.
  void forget(Address worker, const EndReason& reason);
  /// Stops a worker for `time`, as if its process had been stopped.
  void freeze(Address worker, Duration time);
  bool lives(Address actor) const;
  Instant now() const;
  /// Why an actor has ended; none while it runs.
  std::optional<EndReason> end_reason(Address address) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leeway
