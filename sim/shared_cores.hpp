#pragma once
// SharedCores: the cores of one node, and the threads that want them, shared fairly.
//
// As in the scheduler of an operating system: who has had least comes first. A thread that wakes
// preempts one that has had more than it by half a slice, so that who mostly sleeps is there at
// once; of time that was slept away, no more than a slice is made up for. Of those who have had
// about as much, each keeps its core until it has done, or until its slice is over; who was
// preempted goes on first. All that runs is slower when many cores are busy, as they share the
// memory.
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

  /// Without a slice, a thread keeps its core until it has done, whoever wakes. `contention`: by
  /// how much all is slower when every core is busy; in proportion when some are.
  SharedCores(std::uint32_t cores, Duration slice, double contention);

  /// A thread that sleeps. Numbers count from 0.
  Thread add_thread();
  /// The thread wants a core for so long, if it had all to itself. One that finished() has just
  /// named goes on with its core; any other has to sleep.
  void work(Thread thread, Duration time, Instant now);
  /// The thread, which finished() has just named, gives its core to the next.
  void sleep(Thread thread, Instant now);
  /// A thread that has done by `now`; it must work on or sleep before another is asked for.
  std::optional<Thread> finished(Instant now);
  /// When to ask again; none when nobody works. Holds until the next call of work() or sleep().
  std::optional<Instant> next() const;

 private:
  struct State {
    double left = 0;   // nanoseconds of work, on a core that does not share its memory
    double had = 0;    // nanoseconds of a core so far, or more, when it has slept
    double slice = 0;  // nanoseconds that are left of its slice, if one has begun
    bool done = false;
  };
  double speed() const;
  void advance(Instant now);
  void wait(Thread thread);
  /// The first of those who wait takes a core, which is free.
  void start_first();
  /// Gives the core of `running_[place]` to the first of those who wait.
  void give_way(std::size_t place);
  double least_had() const;

  std::uint32_t cores_;
  double slice_;  // nanoseconds; 0: none
  double contention_;
  Instant at_;  // up to which all is counted
  std::vector<State> threads_;
  std::vector<Thread> running_;
  /// By what they have had, if there are slices; then by how long they wait.
  std::set<std::pair<std::pair<double, std::uint64_t>, Thread>> waiting_;
  std::uint64_t next_since_ = 0;
};

}  // namespace leeway::sim
