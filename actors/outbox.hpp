#pragma once
// Role and Outbox: what an actor is, and all that it may do to the world.
//
// A role is a state machine, determined by the messages it receives and their order. It knows no
// thread, no clock but `Outbox::now`, no randomness but `Outbox::random`, and no transport. A host
// owns the role, calls it from one thread at a time, and implements Outbox. Handlers never block; a
// handler that throws ends the actor, and whoever watches it is told.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/address.hpp"
#include "core/end_reason.hpp"
#include "core/ids.hpp"
#include "core/rng.hpp"
#include "core/time.hpp"
#include "messages/message.hpp"

namespace leeway {

struct Envelope;

/// What a piece of work takes, for hosts that simulate or schedule it.
struct Cost {
  std::int64_t flops = 0;
  std::int64_t bytes = 0;
};

/// Long work that a role hands to its host, in parts that run in order and never two at once. The
/// role does not touch what part k writes until the host has called on_part(work, k); hosts may run
/// other work between two parts. A part that throws ends the actor.
class Work {
 public:
  virtual ~Work() = default;
  virtual int parts() const = 0;
  virtual Cost cost(int part) const = 0;
  /// Of an iteration that earlier work of the role has begun: a straggler stays as slow as it was.
  virtual bool continues_iteration() const { return false; }
  virtual void run(int part) = 0;
};

/// Work in one part, below a tenth of a millisecond or so. Hosts do it on the spot, unless the role
/// has a thread of its own to compute on: handing it to another thread and back may take as long,
/// and its data would change caches.
bool is_small(const Work& work);

using TimerToken = std::uint64_t;

/// Something that happened, for traces, checkers and metrics. Fields that make no sense for a kind
/// are 0.
struct Event {
  enum class Kind : std::uint8_t {
    pull_answered,    // worker, iteration, value: min_clock, value2: clock of the worker
    pull_parked,      // worker, iteration, value: min_clock
    bucket_applied,   // worker, incarnation, iteration, value: part, value2: samples
    bucket_repeated,  // worker, iteration, value: part
    clock_moved,      // worker, value: clock
    push_dropped,     // worker, incarnation, iteration: its round was closed without it
    admitted,         // worker, iteration
    fenced,           // worker, value: clock, value2: 1 if it has parts of that iteration
    removed,          // worker
    snapshot_taken,   // iteration, value: cut
    refused,          // worker, value: reason
    malformed,        // name says what was wrong
    lease_granted,    // worker, iteration: first, value: begin, value2: end
    lease_returned,   // worker, value: begin, value2: end
    trained,          // worker, iteration, value: begin, value2: end of the epoch in `epoch`
    partial,          // worker: the first of its pipeline, iteration, value: how many are
    evicted,          // worker: the first of its pipeline
    step_started,     // worker, iteration, value: samples
    step_finished,    // worker, iteration, value: samples
    bound_changed,    // iteration: from here on, value: the staleness bound
    left,             // worker: was asked to leave, and takes part no longer; may be said again
    // Of a stage of a pipeline: worker, iteration, part of the model, value: micro-batch, value2:
    // iteration of the pull whose weights it read.
    forward,
    backward_inputs,  // that and the next: a backward that is not done in halves says both
    backward_weights,
  };
  Kind kind{};
  WorkerId worker;
  Iteration iteration;
  std::int64_t value = 0;
  std::int64_t value2 = 0;
  Epoch epoch;
  Incarnation incarnation;
  std::string_view name;
  std::uint32_t chunk = 0;
};

std::string_view name_of(Event::Kind kind);

/// What a stage of a pipeline computes.
constexpr bool of_stage(Event::Kind kind) {
  return kind == Event::Kind::forward || kind == Event::Kind::backward_inputs ||
         kind == Event::Kind::backward_weights;
}

/// A role is given the same Outbox all its life.
class Outbox {
 public:
  virtual ~Outbox() = default;
  virtual Instant now() const = 0;
  virtual Rng& random() = 0;
  /// Never blocks: the protocol bounds what is outstanding. Messages between two actors arrive in
  /// order, or not at all when the receiver or the link to it has died.
  virtual void send(Address to, Message message) = 0;
  /// Calls on_timer(token) after `delay`. Timers are not cancelled: a stale one is recognised by
  /// its token.
  virtual void after(Duration delay, TimerToken token) = 0;
  virtual void compute(std::shared_ptr<Work> work) = 0;
  /// on_down(actor) is called once when `actor` ends, also when it already has.
  virtual void watch(Address actor) = 0;
  virtual void emit(const Event& event) = 0;
};

class Role {
 public:
  virtual ~Role() = default;
  /// Called once, before anything else.
  virtual void on_start(Outbox&) {}
  virtual void on_message(Address from, const Message& message, Outbox& out) = 0;
  /// The same, from a host that has decoded the message already: `envelope` is decode(message), and
  /// the role's to take apart.
  virtual void on_decoded(Address from, const Message& message, Envelope& /*envelope*/,
                          Outbox& out) {
    on_message(from, message, out);
  }
  virtual void on_timer(TimerToken, Outbox&) {}
  virtual void on_part(Work&, int /*part*/, Outbox&) {}
  virtual void on_down(Address, const EndReason& /*reason*/, Outbox&) {}
  /// The link to `peer` was broken and works again: what was sent to it lately may be lost. Links
  /// of workers may break; one between the scheduler and a shard that does ends the run.
  virtual void on_link(Address /*peer*/, Outbox&) {}
};

}  // namespace leeway
