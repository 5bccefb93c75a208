#pragma once
// LocalHost: runs roles as actors on threads of this process.
//
// Workers get a thread of their own, on which they also compute. All other roles share a pool of as
// many threads as there are cores, with the long work that they hand out. A role that throws ends;
// whoever watches it is told, with what it threw.
#include <functional>
#include <memory>
#include <string>

#include "actors/outbox.hpp"
#include "plan/plan.hpp"

namespace leeway {

class LocalHost {
 public:
  struct Options {
    std::uint64_t seed = 1;
    unsigned pool_threads = 0;  // 0: one a core
    std::vector<plan::Straggler>
        stragglers;  // slow down the work of these workers by making its results arrive later
    /// Called for every event, from many threads at once; may be empty.
    std::function<void(Address, Instant, const Event&)> on_event;

    // For a host that is one of several. Empty: nobody lives elsewhere. All are called by the
    // threads of actors and return soon; on_end, under a lock, calls no host.
    /// Takes what is for an actor that has never been here.
    std::function<void(Address from, Address to, Message)> send_out;
    /// An actor here wants to be told of the end of one that is not: see tell_down.
    std::function<void(Address watcher, Address watched)> watch_out;
    /// An actor has ended, by itself or by kill().
    std::function<void(Address, const std::string& reason)> on_end;
  };

  explicit LocalHost(Options options);
  /// Ends all actors and waits for them.
  ~LocalHost();
  LocalHost(const LocalHost&) = delete;
  LocalHost& operator=(const LocalHost&) = delete;

  /// Before start(): puts a role under its address. Null when nobody is there yet: restart() begins
  /// its first life.
  void add(Address address, std::shared_ptr<Role> role);
  /// Starts all roles.
  void start();
  /// Sends as the host itself.
  void send(Address to, Message message);
  /// Hands on what an actor of another host sends.
  void deliver(Address from, Address to, Message message);
  /// Tells an actor that one of another host has ended, or that the link to it was broken.
  void tell_down(Address watcher, Address ended, const std::string& reason);
  void tell_link(Address actor, Address peer);
  /// Ends a worker, as if its process had died. What it computes is finished, and lost.
  void kill(Address worker, const std::string& reason);
  /// Begins the next life of a worker that has ended.
  void restart(Address worker, std::shared_ptr<Role> role);
  /// A worker lives elsewhere from now on: ends it if need be, and sends out what is for it.
  void forget(Address worker, const std::string& reason);
  /// A worker does nothing for so long, as if its process had been stopped.
  void freeze(Address worker, Duration time);
  bool lives(Address actor) const;
  Instant now() const;
  /// What a role threw, when it has ended; empty while it runs.
  std::string end_reason(Address address) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leeway
