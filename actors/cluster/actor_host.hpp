#pragma once
// ActorHost: the actors of one process. LocalHost runs them on threads, the simulator in virtual
// time.
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
  /// Ends an actor, as if its process had died. Its computation is finished, and the result lost.
  virtual void kill(Address actor, const EndReason& reason) = 0;
  /// Starts the next actor of an address whose last one has ended.
  virtual void restart(Address address, std::shared_ptr<Role> role) = 0;
  /// From now on the actor is in another process: ends it here, and sends its messages out.
  virtual void forget(Address actor, const EndReason& reason) = 0;
  /// All other actors here get on_link(peer).
  virtual void report_link(Address peer) = 0;
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
  /// A standby here has the address of its shard from now on, and is about to send. See
  /// Outbox::take_over.
  virtual void on_take_over(ShardId shard) = 0;
};

}  // namespace leeway
