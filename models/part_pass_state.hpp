#pragma once
// PartPass::State: the inside of PartPass, which no other file includes. Its functions do one thing
// each with one micro-batch; PartPass's own check that they come in order.
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/part_pass.hpp"
#include "models/pass_plan.hpp"

namespace leeway {

struct PartPass::State final : PackedWeights {
  State(const Model& of, ModelChunk range, std::int64_t batch, bool trains, PartOptions given);

  bool is_first() const { return part.first == 0; }
  bool is_last() const { return part.end == model.layers(); }
  const Shape& input_shape() const { return model.output_of(part.first - 1); }
  const Shape& output_shape() const { return model.output_of(part.end - 1); }
  /// The buffer that goes to the next part; PassPlan::kNone: the output is the input under another
  /// shape.
  int sent() const { return is_last() ? PassPlan::kNone : plan.output_of(part.end - 1); }

  const std::byte* get(int parameter, kernels::PackForm form,
                       const std::function<void(std::byte*)>& pack) override;
  void allocate();
  Activations take_activations();
  void drop_activations(Stash& stash);
  void take_input(Stash& stash, const PartInput& given);
  void take_targets(Stash& stash, const Batch& given);
  void run_layers(Stash& stash, std::span<const ParameterView> weights);
  void run_layer(Stash& stash, int layer, std::span<const ParameterView> weights);
  void compute_loss(Stash& stash);
  void forward_again(Stash& stash, std::span<const ParameterView> weights);
  void run_backward(Stash& stash, int layer, const PassPlan::Op& op,
                    std::span<const ParameterView> weights,
                    std::span<const GradientView> gradients);
  /// The views that a layer is given: of its own parameters, or of the one that it borrows.
  template <class View>
  std::span<const View> views_of(int layer, std::span<const View> all) const {
    const int other = model.borrowed_parameter(layer);
    if (other != Model::kNone) return all.subspan(static_cast<std::size_t>(other), 1);
    const auto first = static_cast<std::size_t>(model.first_parameter(layer));
    return all.subspan(first, static_cast<std::size_t>(model.first_parameter(layer + 1)) - first);
  }
  /// Adds what other layers have found of the gradients of this layer's parameters.
  void add_borrowed(int layer, std::span<const GradientView> gradients);
  /// Where a layer writes its share of a parameter that another layer of this part owns.
  Blob* borrowed_of(int layer) {
    Blob& blob = borrowed[static_cast<std::size_t>(layer)];
    return blob ? &blob : nullptr;
  }
  template <class Compute>
  void timed(int layer, const char* what, std::int64_t flops, Compute compute) {
    if (!options.profile) return compute();
    Profile::Timer timer(options.profile.get(), *options.on);
    compute();
    timer.end(model.layer_name(layer), what, static_cast<double>(flops));
  }

  const float* output(const Stash& stash, int layer) const {
    const int buffer = plan.output_of(layer);
    if (buffer == PassPlan::kNone) return stash.x;
    if (buffer == sent()) return stash.output.as_floats();
    return stash.activations->outputs[static_cast<std::size_t>(buffer)].as_floats();
  }
  float* writable_output(Stash& stash, int layer) const {
    const int buffer = plan.output_of(layer);
    if (buffer == sent()) return stash.output.mutable_floats();
    return stash.activations->outputs[static_cast<std::size_t>(buffer)].mutable_floats();
  }
  bool overwritten_by_sum(int layer) const {
    for (int later = layer + 1; later < part.end; ++later)
      if (model.is_sum(later) && plan.output_of(later) == plan.output_of(layer)) return true;
    return false;
  }
  float* gradient(Stash& stash, int buffer);
  const float* readable_gradient(Stash& stash, int buffer) {
    if (buffer != PassPlan::kNone && buffer == plan.output_gradient &&
        plan.gradient_place[static_cast<std::size_t>(buffer)] == PassPlan::Place::outside)
      return stash.output_gradient.as_floats();
    return gradient(stash, buffer);
  }

  const Model& model;
  const ModelChunk part;
  PassPlan plan;
  PartOptions options;
  const std::int64_t max_batch;
  const bool training;
  bool keeps_output = false;  // backward reads what was sent to the next part

  // Working memory, for one micro-batch at a time:
  std::vector<Blob> gradients;  // by the plan's gradient buffers, those that work
  std::vector<Blob> borrowed;   // per layer that borrows a parameter of this part: its gradient
  Blob scratch;

  // Memory of micro-batches, and what of it is free:
  std::vector<std::unique_ptr<Stash>> stashes;
  std::vector<Activations> free_activations;
  std::vector<std::vector<Blob>> free_open;

  PackCache unversioned;  // shared with nobody: its numbers are this pass's own
  std::uint64_t forwards = 0;
  Stash* under_way = nullptr;  // whose backward is neither done nor between its halves
  Half half = Half::both;      // of that
  // Of the layer that is computed:
  Stash* packing = nullptr;
  int first_parameter = 0;
};

}  // namespace leeway
