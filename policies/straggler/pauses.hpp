#pragma once
// PausingStraggler: stops at regular intervals, as for garbage collection.
#include "policies/straggler/straggler.hpp"

namespace leeway {

/// A pause of `length_ms` in every n-th iteration, or in the first iteration that begins after each
/// period of the host's time. The first pause is drawn at random, so that workers with equal
/// settings do not pause together. Several pauses that come due during one iteration count as one:
/// a worker that waits for others has time to collect its garbage.
class PausingStraggler final : public Straggler {
 public:
  PausingStraggler(const plan::Pauses& spec, Rng rng);
  Slowdown next(Instant now) override;
  void skip(std::uint64_t iterations) override;

 private:
  bool is_due(Instant now);

  Duration length_;
  std::uint64_t every_ = 0;  // iterations, or nanoseconds
  bool by_clock_;
  std::uint64_t next_;  // iterations until the next pause, or its time in nanoseconds
};

}  // namespace leeway
