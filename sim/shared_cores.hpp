#pragma once
// SharedCores: the cores of one node, and the threads that want them.
//
// A thread that has a core keeps it until it has done, or until its slice is over and another
// waits, behind which it then queues up; one that wakes preempts nobody. All that runs is slower
// when many cores are busy, as they share the memory.
#include <cstdint>
#include <optional>
#include <vector>

#include "core/fifo.hpp"
#include "core/time.hpp"

namespace leeway::sim {

class SharedCores {
 public:
  using Thread = std::uint32_t;

  /// Without a slice, a thread keeps its core until it has done. `contention`: by how much all is
  /// slower when every core is busy; in proportion when some are.
  SharedCores(std::uint32_t cores, Duration slice, double contention);

  /// The thread wants a core for so long, if it had all to itself. One that finished() has just
  /// named goes on with its core; any other has to sleep.
  void work(Thread thread, Duration time, Instant now);
  /// The thread, which finished() has just named, gives its core to the next.
  void sleep(Thread thread, Instant now);
  /// A thread that has done by `now`; it must work on or sleep before it is asked for another.
  std::optional<Thread> finished(Instant now);
  /// When to ask again; none when nobody works. Holds until the next call of work() or sleep().
  std::optional<Instant> next() const;

 private:
  struct Running {
    Thread thread = 0;
    double left = 0;   // nanoseconds of work, on a core that does not share its memory
    double slice = 0;  // nanoseconds until another may have the core
    bool done = false;
  };
  struct Waiting {
    Thread thread = 0;
    double left = 0;
  };
  double speed() const;
  void advance(Instant now);
  void start_next();
  void take_turns();

  std::uint32_t cores_;
  double slice_;  // nanoseconds; 0: none
  double contention_;
  Instant at_;  // up to which the work of `running_` is counted
  std::vector<Running> running_;
  Fifo<Waiting> waiting_;
};

}  // namespace leeway::sim
