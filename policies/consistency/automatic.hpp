#pragma once
// Automatic: a policy for workers of unknown speed. It follows what the scheduler measures:
//
//   bound      starts at the largest one, and falls, down to 0, while no worker waits for another
//              (AdaptiveBound)
//   balance    by speed, so that a worker that is always slow gets fewer samples
//
// Unless the plan names a delay policy, `momentum` becomes ordered_momentum, under which old
// gradients do little harm (with_automatic_settings()).
//
// `leeway atlas staleness` compares it with the other policies.
#include "policies/consistency/consistency.hpp"

namespace leeway {

class Automatic final : public Consistency {
 public:
  explicit Automatic(std::int64_t high) : high_(high) {}
  std::string_view name() const override { return "auto"; }
  std::int64_t bound() const override { return 0; }
  std::int64_t first_bound() const override { return high_; }
  std::int64_t largest_bound() const override { return high_; }

 private:
  std::int64_t high_;
};

}  // namespace leeway
