#pragma once
// AnySizes: a balance for tests that returns random sizes in each call.
#include "core/rng.hpp"
#include "policies/balance/by_speed.hpp"

namespace leeway::test {

/// The sum of the sizes is that of equal batches.
class AnySizes final : public Balance {
 public:
  AnySizes(std::uint32_t batch, std::uint64_t seed) : batch_(batch), rng_(seed) {}
  std::string_view name() const override { return "any sizes"; }
  std::vector<std::uint32_t> batches(std::span<const WorkerId> live) override {
    std::vector<std::int64_t> weights(live.size());
    for (auto& weight : weights) weight = 1 + static_cast<std::int64_t>(rng_.below(20));
    return apportion(static_cast<std::int64_t>(batch_ * live.size()), weights, 1, 8 * batch_);
  }

 private:
  std::uint32_t batch_;
  Rng rng_;
};

}  // namespace leeway::test
