#pragma once
// FixedDelayStraggler: each iteration takes the same time longer, whatever it computes.
#include "policies/straggler/straggler.hpp"

namespace leeway {

class FixedDelayStraggler final : public Straggler {
 public:
  explicit FixedDelayStraggler(const plan::FixedDelay& spec)
      : delay_(nanoseconds(static_cast<std::int64_t>(spec.delay_ms * 1e6 + 0.5))) {}
  Slowdown next(Instant) override { return {.extra = delay_}; }
  void skip(std::uint64_t) override {}

 private:
  Duration delay_;
};

}  // namespace leeway
