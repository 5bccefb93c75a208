#pragma once
// InterruptGuard: turns Ctrl-C (SIGINT) and SIGTERM into a flag while it lives. A second one ends
// the program at once, as usual.

namespace leeway {

class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  /// Whether a signal has come since construction.
  bool interrupted() const;
};

}  // namespace leeway
