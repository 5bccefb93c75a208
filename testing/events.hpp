#pragma once
// events(run).of<event::PullParked>(): the events of one type in a simulated run.
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "core/time.hpp"
#include "messages/event_queries.hpp"
#include "testing/simulate.hpp"

namespace leeway {

/// One event of type T: its fields by `->`.
template <class T>
struct Seen {
  Address actor;
  Instant at;
  T event;
  const T* operator->() const { return &event; }
};

/// Events of one type, in order. They outlive the run.
template <class T>
class EventsOf {
 public:
  EventsOf(std::vector<Seen<T>> events, std::string what, std::string failure)
      : events_(std::move(events)), what_(std::move(what)), failure_(std::move(failure)) {}

  /// Those that this actor emitted.
  EventsOf at(Address actor) const {
    return only([&](const Seen<T>& one) { return one.actor == actor; });
  }
  /// Those that concern this worker.
  EventsOf of(Address worker) const {
    return only([&](const Seen<T>& one) {
      const auto concerned = worker_of(Event(one.event));
      return concerned && address_of(*concerned) == worker;
    });
  }
  /// Those from `begin` on and before `end`.
  EventsOf between(Duration begin, Duration end) const {
    return only([&](const Seen<T>& one) {
      return one.at >= Instant{} + begin && one.at < Instant{} + end;
    });
  }
  template <class Keep>
  EventsOf only(Keep keep) const {
    std::vector<Seen<T>> kept;
    std::copy_if(events_.begin(), events_.end(), std::back_inserter(kept), keep);
    return {std::move(kept), what_, failure_};
  }

  // Checks, which do not hold if the run has failed.
  Measured count() const { return {static_cast<double>(events_.size()), what_, failure_}; }
  Verdict any() const { return count() > 0; }
  Verdict none() const { return count() == 0; }

  // The events themselves, also of a run that has failed.
  auto begin() const { return events_.begin(); }
  auto end() const { return events_.end(); }
  std::size_t size() const { return events_.size(); }
  bool empty() const { return events_.empty(); }
  const Seen<T>& operator[](std::size_t index) const { return events_.at(index); }

 private:
  std::vector<Seen<T>> events_;
  std::string what_;  // "number of events 'pull parked'"
  std::string failure_;
};

class EventsOfRun {
 public:
  explicit EventsOfRun(const SimulatedRun& run) : run_(run) {}
  template <class T>
  EventsOf<T> of() const {
    std::vector<Seen<T>> found;
    for (const SeenEvent& one : run_.seen)
      if (const T* event = one.event.as<T>()) found.push_back({one.actor, one.at, *event});
    std::string what = "number of events '" + std::string(name_of(Event(T{}))) + "'";
    return {std::move(found), std::move(what), failure_of(run_)};
  }

 private:
  const SimulatedRun& run_;
};

/// Example: events(run).of<event::PullParked>().of(worker(0)).count() > 10.
inline EventsOfRun events(const SimulatedRun& run) {
  return EventsOfRun(run);
}

}  // namespace leeway
