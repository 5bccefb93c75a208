#pragma once
// Optimizer: how a shard turns a gradient into new weights.
//
// A push carries the mean gradient over its samples and a weight w, its share of one round of all
// live workers. The formulas take the unscaled mean with weight w: step lr*w, momentum factor
// beta^w, weight decay lr*w*lambda, AdaGrad accumulates w*g^2. One round then moves the weights
// about as far as one step of synchronous SGD.
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "kernels/executor.hpp"
#include "plan/plan.hpp"
#include "policies/optimizer/eight_bit_state.hpp"

namespace leeway {

/// How much of a step one update is.
struct UpdateSize {
  double weight = 1;         // w of the push, in (0, 1] usually
  double learning_rate = 0;  // from the lr schedule, not multiplied by `weight`
  double progress = 0;       // sum of the weights of all updates of these floats, this one included
  double decay = 1;          // factor of the weight decay
  double lag = 0;            // rounds between the pull of the gradient's weights and this update
  double largest_rate = 0;   // the learning rate without the lr schedule
  double gain = 1;           // factor of the gradient, for optimizers with a velocity
  // For optimizers that update parameters separately (see UpdateRange):
  std::string_view parameter;  // whose floats these are
  std::int64_t first = 0;      // floats of the parameter before them
  std::int64_t floats = 0;     // without padding
  std::int64_t columns = 0;    // of a matrix, whose whole rows these floats are; 0: no matrix
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual std::string_view name() const = 0;
  /// State arrays, each as large as the weights.
  virtual int slots() const = 0;
  /// Arrays that an in-place update reads, plus those that it writes; for cost models.
  virtual int streams() const { return 3 + 2 * slots(); }
  /// Whether a round's gradient is the sum over the workers instead of their mean.
  virtual bool sums_rounds() const { return false; }
  /// Whether the first state array is a velocity: a sum of gradients that the rate multiplies.
  virtual bool has_velocity() const { return false; }
  /// The values of a state array.
  virtual StateRange state_range(int /*slot*/) const { return StateRange::any; }
  /// The first value of all elements of a state array.
  virtual float initial_state(int /*slot*/) const { return 0; }
  /// The formula that an update of this size applies to each weight and its state.
  virtual kernels::UpdateFormula formula(const UpdateSize& size) const = 0;
  /// A formula that moves the weights as far as `rounds` more rounds would if the state stayed as
  /// it is, and leaves the state. nullopt: the state has no direction.
  ///
  /// The predicted weights of Chen, Yang, Cheng, "Efficient and Robust Parallel DNN Training
  /// through Model Parallelism on Multi-GPU Platform" (SpecTrain, arXiv 1809.02839), and for other
  /// optimizers of Guan et al., PipeOptim (arXiv 2312.00839).
  virtual std::optional<kernels::UpdateFormula> look_ahead(const UpdateSize& /*size*/,
                                                           double /*rounds*/) const {
    return std::nullopt;
  }
  /// Applies formula() on `on`. Requires all arrays of `buffers`, with slots() state arrays;
  /// checked.
  virtual void update(Executor& on, const kernels::UpdateBuffers& buffers,
                      const UpdateSize& size) const;

 protected:
  /// Checks that the arrays are there and the size is valid.
  void check(const kernels::UpdateBuffers& buffers, const UpdateSize& size) const;
};

/// The optimizer that the plan names.
std::unique_ptr<Optimizer> make_optimizer(const plan::Optimizer& spec);

}  // namespace leeway
