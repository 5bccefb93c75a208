#pragma once
// DelayAware: an optimizer with a policy for pushes that were computed on older weights.
#include <memory>

#include "policies/delay/delay_policy.hpp"
#include "policies/optimizer/optimizer.hpp"

namespace leeway {

/// Its state arrays are those of the optimizer, then those of the policy.
class DelayAware final : public Optimizer {
 public:
  DelayAware(std::unique_ptr<const Optimizer> optimizer, std::shared_ptr<const DelayPolicy> policy)
      : optimizer_(std::move(optimizer)), policy_(std::move(policy)) {}

  std::string_view name() const override { return optimizer_->name(); }
  int slots() const override { return optimizer_->slots() + policy_->slots(); }
  int streams() const override;
  bool sums_rounds() const override { return optimizer_->sums_rounds(); }
  StateRange state_range(int slot) const override {
    const int own = slot - optimizer_->slots();
    return own < 0 ? optimizer_->state_range(slot) : policy_->state_range(own);
  }
  float initial_state(int slot) const override {
    return slot < optimizer_->slots() ? optimizer_->initial_state(slot) : 0;
  }
  kernels::UpdateFormula formula(const UpdateSize& size) const override;
  /// A policy that compares weights requires `buffers.pulled`; checked.
  void update(Executor& on, const kernels::UpdateBuffers& buffers,
              const UpdateSize& size) const override;

 private:
  kernels::DelayBuffers delay_buffers(const kernels::UpdateBuffers& buffers, float* g_out) const;

  std::unique_ptr<const Optimizer> optimizer_;
  std::shared_ptr<const DelayPolicy> policy_;
};

}  // namespace leeway
