#pragma once
// Delayed Nesterov: each push moves the weights at once, and a velocity of whole rounds moves them
// once in `rounds` rounds. Stale pushes then do not carry each other on.
// Source: Liu, Chhaparia, Douillard, Kale, Rusu, Shen, Szlam and Ranzato, "Asynchronous Local-SGD
// Training for Language Modeling", 2024, algorithm 3, whose N pushes are `rounds` rounds here.
#include "policies/optimizer/optimizer.hpp"
#include "policies/optimizer/weighted.hpp"

namespace leeway {

/// b += w u, p -= lr w u / R, with u = g + lambda p. When a push ends R rounds: m = beta m + b / R,
/// p -= lr beta m, b = 0. With R = 1 and w = 1 this is Nesterov.
class DelayedNesterov final : public Optimizer {
 public:
  DelayedNesterov(const plan::DelayedNesterov& spec, double weight_decay)
      : spec_(spec), decay_(weight_decay) {}
  std::string_view name() const override { return "delayed_nesterov"; }
  int slots() const override { return 2; }  // m, b
  bool has_velocity() const override { return true; }
  kernels::UpdateFormula formula(const UpdateSize& size) const override {
    const bool ends = intervals_until(size.progress, spec_.rounds) >
                      intervals_until(size.progress - size.weight, spec_.rounds);
    const double share = 1.0 / spec_.rounds;
    return kernels::DelayedNesterovFormula{
        .decay = static_cast<float>(decay_ * size.decay),
        .gain = static_cast<float>(size.weight * size.gain),
        .direct = static_cast<float>(size.learning_rate * size.weight * size.gain * share),
        .keep = static_cast<float>(ends ? spec_.factor : 1),
        .mean = static_cast<float>(ends ? share : 0),
        .rate = static_cast<float>(ends ? size.learning_rate * spec_.factor : 0),
        .left = ends ? 0.0f : 1.0f,
    };
  }

 private:
  plan::DelayedNesterov spec_;
  double decay_;
};

}  // namespace leeway
