#pragma once
// PausingStraggler: stands still at regular intervals, as for a garbage collection.
#include "policies/straggler/straggler.hpp"

namespace leeway {

/// A pause of `length_ms` in one of every so many iterations, or in the first iteration that begins
/// after every so many seconds of the host's time. Which one is first is drawn, so that workers
/// with equal pauses do not pause together. Pauses that came due during one iteration are one
/// pause: a worker that waits for others has time to collect its garbage.
class PausingStraggler final : public Straggler {
 public:
  PausingStraggler(const plan::Pauses& spec, Rng chances);
  Slowdown next(Instant now) override;

 private:
  bool due(Instant now);

  Duration length_;
  std::uint64_t every_ = 0;  // iterations, or nanoseconds
  bool by_clock_;
  std::uint64_t next_;  // iterations until the next pause, or its time in nanoseconds
};

}  // namespace leeway
