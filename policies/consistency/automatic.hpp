#pragma once
// Automatic: the choice that needs no knowledge of the workers. Its parts follow what the scheduler
// measures while the run proceeds:
//
//   bound      from 0 to a largest one, which it starts with: it falls while no worker waits for
//              another (AdaptiveBound)
//   balance    by speed, so that a worker that is always slow gets fewer samples
//   momentum   in the order of the gradients' iterations (ordered_momentum), if the plan names no
//              delay policy and the optimizer is momentum; old gradients then do little harm
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
