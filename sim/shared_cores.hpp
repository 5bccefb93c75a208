#pragma once
// SharedCores: a fair scheduler for the threads of one node.
//
// Like the scheduler of an operating system, it runs the threads with the least core time first:
// - A thread that wakes preempts one that has had half a slice more. A thread that mostly sleeps
//   therefore runs at once. A sleeper makes up for at most one slice.
// - Otherwise a thread keeps its core until its work or its slice ends. A preempted thread precedes
//   others with equal core time.
// - All running threads slow down when several cores are busy, because cores share the memory.
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/time.hpp"

namespace leeway::sim {

class SharedCores {
 public:
  using Thread = std::uint32_t;

  /// Without a slice, a thread keeps its core until its work is finished. `contention` is the
  /// slowdown if all cores are busy; it is proportional to the number of other busy cores.
  SharedCores(std::uint32_t cores, Duration slice, double contention);

  /// Adds a sleeping thread. Numbers count from 0.
  Thread add_thread();
  /// Requests a core for `time`, measured without contention. Requires that the thread sleeps, or
  /// that finished() has just returned it; then it keeps its core.
  void work(Thread thread, Duration time, Instant now);
  /// The thread that finished() has just returned releases its core.
  void sleep(Thread thread, Instant now);
  /// A thread whose work is finished by `now`. Call work() or sleep() for it before the next call.
  std::optional<Thread> finished(Instant now);
  /// The time of the next change; none if no thread works. Valid until the next work() or sleep().
  std::optional<Instant> next() const;

 private:
  struct State {
    double left = 0;   // nanoseconds of work, without contention
    double had = 0;    // nanoseconds of core time; raised after a long sleep
    double slice = 0;  // nanoseconds left of a slice that has begun
    bool done = false;
  };
  double speed() const;
  void advance(Instant now);
  void wait(Thread thread);
  /// Starts the first waiting thread on a free core.
  void start_first();
  /// Gives the core of `running_[place]` to the first waiting thread.
  void preempt(std::size_t place);
  double least_had() const;

  std::uint32_t cores_;
  double slice_;  // nanoseconds; 0: none
  double contention_;
  Instant at_;  // time of the last update
  std::vector<State> threads_;
  std::vector<Thread> running_;
  /// By core time if there are slices, then by order of arrival.
  std::set<std::pair<std::pair<double, std::uint64_t>, Thread>> waiting_;
  std::uint64_t next_since_ = 0;
};

}  // namespace leeway::sim
