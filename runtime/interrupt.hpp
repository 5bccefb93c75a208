#pragma once
// InterruptGuard: while it lives, turns Ctrl-C (SIGINT) and SIGTERM into a flag. A second signal
// ends the program at once.
//
// Several guards may live at once, in any threads, for a program with several concurrent runs. A
// signal interrupts all of them, and all guards created before the last of them is destroyed.

namespace leeway {

class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  /// Whether a signal has arrived since the first of the overlapping guards was created.
  bool interrupted() const;
};

}  // namespace leeway
