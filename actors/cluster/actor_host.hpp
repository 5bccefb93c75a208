#pragma once
// ActorHost: the actors of one process. LocalHost runs them on threads, the simulator in virtual
// time.
#include <functional>
#include <memory>

#include "actors/outbox.hpp"

namespace leeway {

class ActorHost {
 public:
  virtual ~ActorHost() = default;

  /// Before start(): puts a role under its address.
  virtual void add(Address address, std::shared_ptr<Role> role) = 0;
  /// Starts all roles.
  virtual void start() = 0;
  /// Delivers a message to an actor of this process, or sends it out.
  virtual void deliver(Address from, Address to, Message message) = 0;
  /// Reports to an actor that one of another process has ended, or cannot be reached.
  virtual void report_down(Address watcher, Address ended, const EndReason& reason) = 0;
  /// Ends a worker, as if its process had died. Its computation is finished, and the result lost.
  virtual void kill(Address worker, const EndReason& reason) = 0;
  /// Starts the next actor of a worker that has ended.
  virtual void restart(Address worker, std::shared_ptr<Role> role) = 0;
  /// From now on the worker is in another process: ends it here, and sends its messages out.
  virtual void forget(Address worker, const EndReason& reason) = 0;
  virtual bool lives(Address actor) const = 0;
};

/// What an ActorHost reports about the actors of its process. Actors' threads call it, and it
/// returns soon.
class ActorHostEvents {
 public:
  virtual ~ActorHostEvents() = default;
  /// An actor here sends to one that is not here.
  virtual void send_out(Address from, Address to, Message message) = 0;
  /// An actor here watches one that is not here; see ActorHost::report_down.
  virtual void watch_out(Address watcher, Address watched) = 0;
  /// An actor has ended, by itself or by kill(). Called under a lock; must not call the host.
  virtual void on_end(Address actor, const EndReason& reason) = 0;
};

}  // namespace leeway
