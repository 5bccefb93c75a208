#pragma once
// LayerRunner: computes the layers of a chunk, their loss and their backward, for one micro-batch
// at a time. Only ChunkPass includes this file; it checks the order of the calls.
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "models/chunk_pass.hpp"
#include "models/pass_memory.hpp"
#include "models/pass_plan.hpp"

namespace leeway {

class LayerRunner final : public PackedWeights {
 public:
  LayerRunner(const Model& model, ModelChunk chunk, std::int64_t max_batch, bool training,
              ChunkOptions options);

  bool is_first() const { return chunk.first == 0; }
  bool is_last() const { return chunk.end == model.layers(); }
  const Shape& input_shape() const { return model.output_of(chunk.first - 1); }
  const Shape& output_shape() const { return model.output_of(chunk.end - 1); }

  // Forward.
  /// Reads the input, and runs the layers and the loss.
  void forward(Stash& stash, const ChunkInput& input, std::span<const ParameterView> weights);
  /// Runs the layers and the loss again if their activations were dropped.
  void forward_again(Stash& stash, std::span<const ParameterView> weights);
  /// Whether a later sum wrote its own output into that of `layer`.
  bool is_overwritten_by_sum(int layer) const;

  // Backward.
  /// The operations that the plan lists for one layer.
  void backward(Stash& stash, int layer, std::span<const ParameterView> weights,
                std::span<const GradientView> gradients);

  const Model& model;
  const ModelChunk chunk;
  const PassPlan plan;
  ChunkOptions options;
  const std::int64_t max_batch;
  const bool training;
  const bool keeps_output;  // backward reads the output that was sent

  PassMemory memory;
  std::vector<std::unique_ptr<Stash>> stashes;
  PackCache unversioned;  // of this pass only, because it numbers its own forwards
  std::uint64_t forwards = 0;
  Stash* in_backward = nullptr;             // the stash between start_backward and finish_backward
  BackwardFor purpose = BackwardFor::both;  // of that backward

 private:
  void run_layers(Stash& stash, std::span<const ParameterView> weights);
  void run_layer(Stash& stash, int layer, std::span<const ParameterView> weights);
  void compute_loss(Stash& stash);
  void backward_layer(Stash& stash, int layer, const PassPlan::Op& op,
                      std::span<const ParameterView> weights,
                      std::span<const GradientView> gradients);
  /// Adds the contributions of borrowing layers to the gradients of this layer's parameters.
  void add_borrowed(int layer, std::span<const GradientView> gradients);
  const std::byte* get(int parameter, const kernels::PackForm& form,
                       const std::function<void(std::byte*)>& pack) override;
  /// The first parameter of the layer, or the one that it borrows.
  int first_weight(int layer) const;
  /// The views of the layer's parameters, or of the parameter that it borrows.
  template <class View>
  std::span<const View> views_of(int layer, std::span<const View> all) const;
  template <class Compute>
  void timed(int layer, const char* what, std::int64_t flops, Compute compute);

  // The layer that is being computed:
  Stash* packing_ = nullptr;
  int first_weight_ = 0;
};

}  // namespace leeway
