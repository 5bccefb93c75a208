#pragma once
// Equal: each worker gets the plan's batch.
#include "policies/balance/balance.hpp"

namespace leeway {

class Equal final : public Balance {
 public:
  explicit Equal(std::uint32_t batch) : batch_(batch) {}
  std::string_view name() const override { return "equal"; }
  std::vector<std::uint32_t> batches(std::span<const WorkerId> live) override {
    return std::vector(live.size(), batch_);
  }

 private:
  std::uint32_t batch_;
};

}  // namespace leeway
