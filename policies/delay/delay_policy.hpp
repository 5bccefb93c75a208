#pragma once
// DelayPolicy: how a shard applies a gradient that was computed on older weights.
//
// The lag of a push is the sum of the weights of all updates between the pull of its weights and
// its own update. A round of all workers has weight 1, so the lag counts rounds; with
// `whole_steps` every push has weight 1, and the lag counts updates, as in the published methods.
// With lag 0 and unchanged weights a policy changes nothing, to the bit; fed_async, which scales
// all pushes, is an exception.
//
// A policy knows only numbers. DelayAware applies it together with an optimizer;
// actors/shard/pulled_versions.hpp keeps what a shard has to remember.
#include <memory>
#include <optional>
#include <string_view>

#include "core/expected.hpp"
#include "kernels/delay_correction.hpp"
#include "plan/plan.hpp"
#include "policies/optimizer/optimizer.hpp"

namespace leeway {

class DelayPolicy {
 public:
  virtual ~DelayPolicy() = default;
  virtual std::string_view name() const = 0;
  /// The reason why the policy does not work with this optimizer, and the remedy; empty: it works.
  /// Not called for sum, assign and updaters, which take no steps.
  virtual std::string_view refusal(const plan::Optimizer& /*optimizer*/) const { return {}; }
  /// The smallest lag that is too old: the worker computes the iteration again with newer weights;
  /// nullopt: none is.
  virtual std::optional<double> lag_limit() const { return std::nullopt; }
  /// Whether a correction compares the present weights with those of the pull.
  virtual bool compares_weights() const { return false; }
  /// Number of the policy's state arrays, which follow those of the optimizer, and their values.
  virtual int slots() const { return 0; }
  virtual StateRange state_range(int /*slot*/) const { return StateRange::not_negative; }

  /// The factor of a push's step. An optimizer with a velocity applies it to the gradient, because
  /// its rate would slow down earlier gradients too; others apply it to the rate.
  virtual double step_factor(const UpdateSize& /*size*/) const { return 1; }
  /// The correction of the gradient before an update; nullopt: none.
  virtual std::optional<kernels::DelayFormula> correction(const UpdateSize& /*size*/) const {
    return std::nullopt;
  }
  /// The formula of an update of this size.
  virtual kernels::UpdateFormula formula(const Optimizer& optimizer, const UpdateSize& size) const {
    return optimizer.formula(size);
  }
};

/// The policy that the plan names; null for plain pushes.
std::unique_ptr<DelayPolicy> make_delay_policy(const Plan& plan);

/// Whether the plan's policy makes sense with its optimizer and consistency.
Status check_delay_policy(const Plan& plan);

}  // namespace leeway
