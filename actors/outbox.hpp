#pragma once
// Role and Outbox: the state machine of an actor, and its interface to the host.
//
// Messages and their order determine a role. It knows no thread, no transport, no clock except
// `Outbox::now` and no randomness except `Outbox::random`. A host owns the role, calls it from one
// thread at a time, and implements Outbox. Handlers never block. A handler that throws ends the
// actor, and the host informs the actor's watchers.
#include <cstdint>
#include <memory>

#include "core/address.hpp"
#include "core/end_reason.hpp"
#include "core/ids.hpp"
#include "core/rng.hpp"
#include "core/time.hpp"
#include "messages/events.hpp"
#include "messages/message.hpp"

namespace leeway {

struct Envelope;

/// The cost of a part of a computation, for hosts that simulate or schedule it.
struct Cost {
  std::int64_t flops = 0;
  std::int64_t bytes = 0;        // of memory traffic, at the same time as the arithmetic
  Duration time;                 // besides, on any machine
  std::int64_t bytes_apart = 0;  // of memory traffic before or after the arithmetic
};

/// A long computation that a role hands to its host, in parts. Parts run in order, one at a time;
/// hosts may run other work between two parts. The role reads the results of part k only after the
/// host has called on_part(work, k). A part that throws ends the actor.
class Work {
 public:
  virtual ~Work() = default;
  virtual int parts() const = 0;
  virtual Cost cost(int part) const = 0;
  /// True for work in one part that mostly waits for a disk. Hosts run it beside the role's other
  /// work.
  virtual bool waits_for_disk() const { return false; }
  /// True if earlier work of the role has begun the iteration. A straggler then keeps its factor.
  virtual bool continues_iteration() const { return false; }
  virtual void run(int part) = 0;
  /// Of work that waits for a disk, after run(): what the role learns from it. Only the primary of
  /// a replicated role (actors/replica) runs such work; its standby adopts the outcome instead.
  virtual Message outcome() const { return {}; }
  virtual void adopt(const Message& /*outcome*/) {}
};

/// True for work in one part of at most about a tenth of a millisecond. Hosts run it at once,
/// because a change of thread costs as much and moves its data between caches. Roles with a thread
/// for computing run it there.
bool is_small(const Work& work);

using TimerToken = std::uint64_t;

/// A role has the same Outbox for its whole life.
class Outbox {
 public:
  virtual ~Outbox() = default;
  virtual Instant now() const = 0;
  virtual Rng& random() = 0;
  /// Never blocks, because the protocol bounds the messages in flight. Messages between two actors
  /// arrive in order. They are lost if the receiver has ended or the link is broken.
  virtual void send(Address to, Message message) = 0;
  /// Calls on_timer(token) after `delay`. Timers are never cancelled; the role recognises a stale
  /// timer by its token.
  virtual void after(Duration delay, TimerToken token) = 0;
  virtual void compute(std::shared_ptr<Work> work) = 0;
  /// Calls on_down(actor) once when `actor` ends, or soon if it has ended already.
  virtual void watch(Address actor) = 0;
  virtual void emit(const Event& event) = 0;
  /// Whether observers of a simulation check the role.
  virtual bool is_checked() const { return false; }
  /// Only for these observers: not part of the run's trace.
  virtual void emit_to_checkers(const Event& /*event*/) {}
  /// For a replicated role: record `number` of what it does, from 1, is this event, or that it has
  /// handled this message. A standby that takes over may repeat the last records of its primary; a
  /// host may ignore the repeats.
  virtual void emit_numbered(std::uint64_t /*number*/, const Event& event) { emit(event); }
  virtual void handled_numbered(std::uint64_t /*number*/, Address /*from*/, const Message&) {}
  /// From now on, messages to `address` reach this actor, and its messages come from there. An
  /// actor that had the address has ended, or ends now. All others get on_link(address), because
  /// messages to it may be lost. Only hosts with standbys implement it.
  virtual void take_over(Address address);
};

class Role {
 public:
  virtual ~Role() = default;
  /// Real hosts call this once before on_start, for actors with a thread of their own. It does what
  /// would make the first computation slow, and changes nothing that the role does later.
  virtual void warm_up() {}
  /// Called once, before any other input.
  virtual void on_start(Outbox&) {}
  virtual void on_message(Address from, const Message& message, Outbox& out) = 0;
  /// Whether the role calls Outbox::handled_numbered for its messages, later than on_message.
  virtual bool is_replicated() const { return false; }
  /// For hosts that have decoded the message: `envelope` is decode(message). The role may move from
  /// it.
  virtual void on_decoded(Address from, const Message& message, Envelope& /*envelope*/,
                          Outbox& out) {
    on_message(from, message, out);
  }
  virtual void on_timer(TimerToken, Outbox&) {}
  virtual void on_part(Work&, int /*part*/, Outbox&) {}
  virtual void on_down(Address, const EndReason& /*reason*/, Outbox&) {}
  /// The link to `peer` was broken and works again. Recent messages to the peer may be lost. Links
  /// of workers recover, and those between scheduler and shards.
  virtual void on_link(Address /*peer*/, Outbox&) {}
};

}  // namespace leeway
