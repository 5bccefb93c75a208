#pragma once
// InterruptGuard: turns Ctrl-C (SIGINT) and SIGTERM into a flag while it lives. A second one ends
// the program at once, as usual.
//
// Several may live at once, in any threads, as when a program has many runs under way: a signal
// interrupts all of them, and those that are made before the last of them is gone.

namespace leeway {

class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  /// Whether a signal has come since the first of the guards that overlap was made.
  bool interrupted() const;
};

}  // namespace leeway
