#pragma once
// Story: a simulated run of a job with a scripted interleaving: held messages, crashes, freezes.
//
// All checkers watch the run. The run advances only as far as the story says, and faults happen in
// between. The call that advances the run throws the Violation of a checker.
//
// Example:
//
//   #include <leeway/sim/story.hpp>
//   using namespace leeway::sim::story;
//   bool waits_for_a_lost_worker(const leeway::Plan& plan) {
//     Story story(plan);
//     story.hold(worker(1), shard(0)).until(parked(worker(0), 2)).crash(worker(1)).to_the_end();
//     return story.happened(answered(worker(0), 2));
//   }
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/simulation.hpp"

namespace leeway::sim::story {

// The same functions, so that a program may use both namespaces.
using leeway::shard;
using leeway::worker;

/// Matches events, messages and ends of actors. An empty field matches any value.
struct EventPattern {
  enum class Kind : std::uint8_t { event, sent, delivered, ended };
  Kind kind{};
  std::optional<std::size_t> type;     // index among the arms of Event or Body
  std::string_view name;               // of the type, in words
  std::optional<Address> from, to;     // of an event: the actor, and the worker that it concerns
  std::optional<Iteration> iteration;  // that the event or message names

  /// The same pattern, for events at this actor only.
  EventPattern at(Address actor) const {
    EventPattern here = *this;
    here.from = actor;
    return here;
  }
  /// "event 'pull parked' of worker 0 at shard 1, iteration 3".
  std::string in_words() const;
};

EventPattern pattern_of(const Event& event, std::optional<Address> worker,
                        std::optional<int> iteration);
/// Events of one type: emitted<event::PushDropped>(worker(1)).
template <class T>
EventPattern emitted(std::optional<Address> worker = {}, std::optional<int> iteration = {}) {
  return pattern_of(T{}, worker, iteration);
}

// At a shard.
inline EventPattern parked(Address worker, std::optional<int> iteration = {}) {
  return emitted<event::PullParked>(worker, iteration);
}
inline EventPattern answered(Address worker, std::optional<int> iteration = {}) {
  return emitted<event::PullAnswered>(worker, iteration);
}
inline EventPattern applied(Address worker, std::optional<int> iteration = {}) {
  return emitted<event::BucketApplied>(worker, iteration);
}
inline EventPattern repeated(Address worker, std::optional<int> iteration = {}) {
  return emitted<event::BucketRepeated>(worker, iteration);
}
inline EventPattern refused(Address worker, std::optional<int> iteration = {}) {
  return emitted<event::Refused>(worker, iteration);
}
inline EventPattern admitted(Address worker) {
  return emitted<event::Admitted>(worker);
}
inline EventPattern fenced(Address worker) {
  return emitted<event::Fenced>(worker);
}
inline EventPattern removed(Address worker) {
  return emitted<event::Removed>(worker);
}

// At the scheduler.
inline EventPattern leased(Address worker, std::optional<int> iteration = {}) {
  return emitted<event::LeaseGranted>(worker, iteration);
}
inline EventPattern given_back(Address worker) {
  return emitted<event::LeaseReturned>(worker);
}
inline EventPattern evicted(Address worker) {
  return emitted<event::Evicted>(worker);
}
inline EventPattern partial(Address worker) {
  return emitted<event::PartialPush>(worker);
}

// At a worker.
inline EventPattern begun(Address worker, std::optional<int> iteration = {}) {
  return emitted<event::StepStarted>(worker, iteration);
}
inline EventPattern finished(Address worker, std::optional<int> iteration = {}) {
  return emitted<event::StepFinished>(worker, iteration);
}

/// The actor has ended before the end of the run.
EventPattern ended(Address actor);

// Messages of one type: sent<msg::Push>(worker(1), shard(0)).
EventPattern pattern_of(EventPattern::Kind kind, const Body& body, Address from, Address to,
                        std::optional<int> iteration);
template <class Message>
EventPattern sent(Address from, Address to, std::optional<int> iteration = {}) {
  return pattern_of(EventPattern::Kind::sent, Message{}, from, to, iteration);
}
template <class Message>
EventPattern delivered(Address from, Address to, std::optional<int> iteration = {}) {
  return pattern_of(EventPattern::Kind::delivered, Message{}, from, to, iteration);
}

class Story {
 public:
  explicit Story(std::shared_ptr<const Job> job);
  /// Throws CheckFailed if the plan is refused. Uses the default world if the plan has none.
  explicit Story(const Plan& plan);
  /// The story of a Scenario.
  template <class Scenario>
  requires requires(const Scenario& scenario) {
    { scenario.plan() } -> std::convertible_to<const Plan&>;
  }
  explicit Story(const Scenario& scenario) : Story(scenario.plan()) {}
  ~Story();

  // Advance the run. Each call throws CheckFailed if the run ends or deadlocks before its goal.

  /// Until the next match of the pattern.
  Story& until(const EventPattern& pattern);
  Story& pass(Duration time);
  Story& to_the_end();

  // Faults, which happen at the present time.

  /// Messages from one actor to the other wait from now on.
  Story& hold(Address from, Address to);
  /// Messages wait from the next message on that matches; requires a sent() pattern.
  Story& hold(const EventPattern& sent);
  Story& release(Address from, Address to);
  /// Releases the oldest waiting message, and advances the run until it is delivered.
  Story& deliver_one(Address from, Address to);
  /// The connection breaks. Messages in flight and waiting messages are lost.
  Story& sever(Address a, Address b);
  Story& mend(Address a, Address b);
  Story& reconnect(Address a, Address b) { return sever(a, b).mend(a, b); }
  Story& delay(Address from, Address to, Duration extra);
  Story& crash(Address actor);
  Story& start_again(Address actor);
  Story& freeze(Address actor);
  Story& thaw(Address actor);

  // Results.

  std::size_t count(const EventPattern& pattern) const;
  bool happened(const EventPattern& pattern) const { return count(pattern) > 0; }
  /// Whether a pull of the worker is parked at the shard.
  bool waits(Address worker, Address shard) const;
  /// Requires that the run has ended.
  const RunTotals& totals() const { return simulation_.totals(); }

 private:
  class Witness;
  Story(std::shared_ptr<const Job> job, std::shared_ptr<Witness> witness);
  /// Advances the run by one step. `goal` is for the error.
  void step(const std::string& goal);
  Simulator& host() { return simulation_.host(); }

  std::shared_ptr<Witness> witness_;
  Simulation simulation_;
  bool started_ = false;
};

}  // namespace leeway::sim::story
