#include "models/pass.hpp"

#include <algorithm>

#include "core/check.hpp"

namespace leeway {

namespace {

ModelChunk whole_of(const std::shared_ptr<const Model>& model) {
  LW_CHECK(model);
  return ModelChunk::whole(*model);
}

}  // namespace

std::int64_t evaluation_batch(const Model& model) {
  constexpr std::int64_t kFlops = 1'000'000'000;
  const std::int64_t of_one = std::max<std::int64_t>(1, model.flops_per_sample());
  return std::clamp<std::int64_t>(kFlops / of_one, 16, 256);
}

Pass::Pass(std::shared_ptr<const Model> model, std::int64_t max_batch, bool backward,
           PassOptions options)
    : pass_(model, whole_of(model), max_batch, backward,
            {.on = std::move(options.on),
             .packed = std::move(options.packed),
             .profile = std::move(options.profile),
             .several = false}),
      stash_(pass_.take_stash()) {}

void Pass::start_forward(const Batch& batch, std::span<const ParameterView> weights,
                         std::span<const std::uint64_t> versions) {
  pass_.start_forward(stash_, {.batch = batch, .input = {}}, weights, versions);
}

void Pass::backward(int layer, std::span<const ParameterView> weights,
                    std::span<const GradientView> gradients) {
  if (layer == model().layers() - 1) pass_.start_backward(stash_, BackwardFor::both, {}, weights);
  pass_.backward_layer(stash_, layer, weights, gradients);
  if (layer == 0) pass_.finish_backward(stash_);
}

}  // namespace leeway
