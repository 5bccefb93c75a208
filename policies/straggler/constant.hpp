#pragma once
// ConstantStraggler: slow by the same factor throughout.
#include "policies/straggler/straggler.hpp"

namespace leeway {

class ConstantStraggler final : public Straggler {
 public:
  explicit ConstantStraggler(const plan::ConstantFactor& spec) : spec_(spec) {}
  Slowdown next(Instant) override { return {.factor = spec_.factor}; }
  void skip(std::uint64_t) override {}

 private:
  plan::ConstantFactor spec_;
};

}  // namespace leeway
