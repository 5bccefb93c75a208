#pragma once
// UpdaterOptimizer: calls a function of the program, without learning rate, decay or state.
#include "policies/optimizer/optimizer.hpp"
#include "policies/optimizer/updater.hpp"

namespace leeway {

class UpdaterOptimizer final : public Optimizer {
 public:
  explicit UpdaterOptimizer(const plan::Updater& spec);
  std::string_view name() const override { return "updater"; }
  int slots() const override { return 0; }
  bool sums_rounds() const override { return true; }
  /// An updater has no formula.
  kernels::UpdateFormula formula(const UpdateSize& size) const override;
  void update(Executor& on, const kernels::UpdateBuffers& buffers,
              const UpdateSize& size) const override;

 private:
  Updater update_;  // null in a process without shards
};

}  // namespace leeway
