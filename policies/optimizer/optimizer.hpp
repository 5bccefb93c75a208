#pragma once
// Optimizer: how a shard turns a gradient into new weights.
//
// A push carries the mean gradient over its samples and a weight w, its share of one round of all
// live workers. The formulas take the unscaled mean with weight w: step lr*w, momentum factor
// beta^w, weight decay lr*w*lambda, AdaGrad accumulates w*g^2; so that one round moves the weights
// about as far as one step of synchronous SGD.
#include <cstdint>
#include <memory>
#include <string_view>

#include "kernels/executor.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// How much of a step one update is.
struct UpdateSize {
  double weight = 1;         // w of the push, in (0, 1] usually
  double learning_rate = 0;  // by the schedule, not yet times weight
  double progress = 0;       // sum of the weights of all updates of these floats, this one included
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual std::string_view name() const = 0;
  /// State arrays, each as large as the weights.
  virtual int slots() const = 0;
  /// Streams of `count` floats that an in-place update reads and writes: for costs and roofline
  /// figures.
  int streams() const { return 3 + 2 * slots(); }
  /// What an update of this size does to each weight and its state; the state is zeros before the
  /// first update.
  virtual kernels::UpdateFormula formula(const UpdateSize& size) const = 0;
  /// Does it, on `on`. Requires all arrays of `buffers`, slots() of them of state; checked.
  void update(Executor& on, const kernels::UpdateBuffers& buffers, const UpdateSize& size) const;
};

/// By the plan.
std::unique_ptr<Optimizer> make_optimizer(const plan::Optimizer& spec);

}  // namespace leeway
