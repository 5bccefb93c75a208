#pragma once
// RepeatedStraggler: the factors of a list, one after the other.
#include <vector>

#include "policies/straggler/straggler.hpp"

namespace leeway {

/// One factor per iteration, from the first to the last, repeatedly. Requires at least one factor.
class RepeatedStraggler : public Straggler {
 public:
  explicit RepeatedStraggler(std::vector<double> factors) : factors_(std::move(factors)) {}
  Slowdown next(Instant) override {
    const double factor = factors_[at_];
    at_ = (at_ + 1) % factors_.size();
    return {.factor = factor};
  }
  void skip(std::uint64_t iterations) override {
    at_ = (at_ + iterations % factors_.size()) % factors_.size();
  }

 private:
  std::vector<double> factors_;
  std::size_t at_ = 0;
};

}  // namespace leeway
