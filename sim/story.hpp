#pragma once
// Story: an interleaving written by hand - who is held up, who dies, and when - in a few lines.
//
// A run of a job under all checkers, which goes on only as far as it is told; in between, anything
// may befall it. A violation of the protocol is thrown by whatever made the run go on.
//
// Example:
//
//   #include <leeway/sim/story.hpp>
//   using namespace leeway::sim::story;
//   bool waits_for_a_lost_worker(std::shared_ptr<const leeway::Job> job) {
//     Story story(job);
//     story.hold(worker(1), shard(0)).until(parked(worker(0), 2)).crash(worker(1)).to_the_end();
//     return story.happened(answered(worker(0), 2));
//   }
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/simulation.hpp"

namespace leeway::sim::story {

constexpr Address worker(std::uint32_t index) {
  return address_of(WorkerId(index));
}
constexpr Address shard(std::uint32_t index) {
  return address_of(ShardId(index));
}

/// Something that may happen, as far as it matters: what is left open may be anything.
struct EventPattern {
  enum class Kind : std::uint8_t { event, sent, delivered, ended };
  Kind kind{};
  Event::Kind event{};                 // of an event
  std::string_view message;            // of a message, its name; empty: any
  std::optional<Address> from, to;     // of an event: at whom, and the worker that it concerns
  std::optional<Iteration> iteration;  // also the one that a message speaks of

  /// The same, at this actor alone.
  EventPattern at(Address actor) const {
    EventPattern here = *this;
    here.from = actor;
    return here;
  }
  /// "worker 0: pull_parked, iteration 3".
  std::string in_words() const;
};

/// An event that concerns a worker.
EventPattern event(Event::Kind kind, Address worker, std::optional<int> iteration = {});

// At a shard.
inline EventPattern parked(Address worker, std::optional<int> iteration = {}) {
  return event(Event::Kind::pull_parked, worker, iteration);
}
inline EventPattern answered(Address worker, std::optional<int> iteration = {}) {
  return event(Event::Kind::pull_answered, worker, iteration);
}
inline EventPattern applied(Address worker, std::optional<int> iteration = {}) {
  return event(Event::Kind::bucket_applied, worker, iteration);
}
inline EventPattern repeated(Address worker, std::optional<int> iteration = {}) {
  return event(Event::Kind::bucket_repeated, worker, iteration);
}
inline EventPattern refused(Address worker, std::optional<int> iteration = {}) {
  return event(Event::Kind::refused, worker, iteration);
}
inline EventPattern admitted(Address worker) {
  return event(Event::Kind::admitted, worker);
}
inline EventPattern fenced(Address worker) {
  return event(Event::Kind::fenced, worker);
}
inline EventPattern removed(Address worker) {
  return event(Event::Kind::removed, worker);
}

// At the scheduler.
inline EventPattern leased(Address worker, std::optional<int> iteration = {}) {
  return event(Event::Kind::lease_granted, worker, iteration);
}
inline EventPattern given_back(Address worker) {
  return event(Event::Kind::lease_returned, worker);
}
inline EventPattern evicted(Address worker) {
  return event(Event::Kind::evicted, worker);
}
inline EventPattern partial(Address worker) {
  return event(Event::Kind::partial, worker);
}

// At a worker.
inline EventPattern begun(Address worker, std::optional<int> iteration = {}) {
  return event(Event::Kind::step_started, worker, iteration);
}
inline EventPattern finished(Address worker, std::optional<int> iteration = {}) {
  return event(Event::Kind::step_finished, worker, iteration);
}

/// The actor has ended, before its run.
EventPattern ended(Address actor);

// Messages, of one type: sent<msg::Push>(worker(1), shard(0)).
EventPattern message(EventPattern::Kind kind, const Body& body, Address from, Address to,
                     std::optional<int> iteration);
template <class Message>
EventPattern sent(Address from, Address to, std::optional<int> iteration = {}) {
  return message(EventPattern::Kind::sent, Message{}, from, to, iteration);
}
template <class Message>
EventPattern delivered(Address from, Address to, std::optional<int> iteration = {}) {
  return message(EventPattern::Kind::delivered, Message{}, from, to, iteration);
}

class Story {
 public:
  explicit Story(std::shared_ptr<const Job> job);
  ~Story();

  // How the run goes on. Throws CheckFailed when it ends, or comes to a standstill, before that.

  /// Until this happens, once more from here on.
  Story& until(const EventPattern& pattern);
  Story& pass(Duration time);
  Story& to_the_end();

  // What befalls it, now.

  /// Messages from one to the other wait.
  Story& hold(Address from, Address to);
  /// They wait from the next such message on, which must be a sent() one.
  Story& hold(const EventPattern& sent);
  Story& release(Address from, Address to);
  /// Lets the oldest message that waits through, and goes on until it is delivered.
  Story& deliver_one(Address from, Address to);
  /// The connection between the two is lost with all that is on its way, and what waits.
  Story& sever(Address a, Address b);
  Story& mend(Address a, Address b);
  Story& reconnect(Address a, Address b) { return sever(a, b).mend(a, b); }
  Story& delay(Address from, Address to, Duration extra);
  Story& crash(Address actor);
  Story& start_again(Address actor);
  Story& freeze(Address actor);
  Story& thaw(Address actor);

  // What came of it.

  std::size_t count(const EventPattern& pattern) const;
  bool happened(const EventPattern& pattern) const { return count(pattern) > 0; }
  /// Whether a pull of the worker is parked at the shard.
  bool waits(Address worker, Address shard) const;
  /// After the end.
  const RunTotals& totals() const { return simulation_.totals(); }

 private:
  class Witness;
  Story(std::shared_ptr<const Job> job, std::shared_ptr<Witness> witness);
  /// One event of the run. `what`: which it is to go on to, for the error.
  void step(const std::string& what);
  Simulator& host() { return simulation_.host(); }

  std::shared_ptr<Witness> witness_;
  Simulation simulation_;
  bool started_ = false;
};

}  // namespace leeway::sim::story
