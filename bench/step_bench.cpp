// One training step of the MLP 784-512-256-10 on one thread, batch by batch: Leeway's Pass and
// optimizer against a plain loop over oneDNN's sgemm, which is what any runtime on top can hope
// for. Run with --benchmark_enable_random_interleaving=true to compare.
#include <benchmark/benchmark.h>

#include "bench/plain_loop.hpp"
#include "core/limits.hpp"
#include "kernels/threads.hpp"
#include "models/layout.hpp"
#include "models/model.hpp"
#include "policies/optimizer/optimizer.hpp"
#include "tensor/blob.hpp"

namespace {

using namespace leeway;
using bench::PlainLoop;
using bench::random_blob;

/// Weights, gradients and velocities in blocks, as a worker and its shards hold them.
struct Memory {
  explicit Memory(const Model& model) : layout(model, 1, limits::kMaxBlockBytes) {
    for (const Block& block : layout.blocks()) {
      weights.push_back(random_blob(block.floats, 0.03, block.id.value()));
      gradients.push_back(random_blob(block.floats, 0, 1));
      velocities.push_back(random_blob(block.floats, 0, 1));
    }
    std::vector<const float*> w;
    std::vector<float*> g;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      w.push_back(weights[i].as_floats());
      g.push_back(gradients[i].mutable_floats());
    }
    weight_slices = std::make_unique<ParameterSlices<const float>>(model, layout, w);
    gradient_slices = std::make_unique<ParameterSlices<float>>(model, layout, g);
  }

  void update(const Optimizer& optimizer) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      float* const w = weights[i].mutable_floats();
      float* const out[] = {velocities[i].mutable_floats()};
      const float* const in[] = {velocities[i].as_floats()};
      optimizer.update({.count = layout.blocks()[i].floats,
                        .w_out = w,
                        .w = w,
                        .state_out = out,
                        .state = in,
                        .g = gradients[i].as_floats(),
                        .weight = 1,
                        .learning_rate = 0.01,
                        .progress = 1});
    }
  }

  Layout layout;
  std::vector<Blob> weights, gradients, velocities;
  std::unique_ptr<ParameterSlices<const float>> weight_slices;
  std::unique_ptr<ParameterSlices<float>> gradient_slices;
};

void leeway_step(benchmark::State& state) {
  kernels::use_one_compute_thread();
  const std::int64_t batch = state.range(0);
  const bool with_update = state.range(1) != 0;
  const auto model = *Model::build({plan::Flatten{}, plan::Linear{512}, plan::Relu{},
                                    plan::Linear{256}, plan::Relu{}, plan::Linear{10}},
                                   plan::Loss::softmax_cross_entropy, {1, 28, 28}, 10, 0);
  Memory memory(*model);
  const auto momentum = make_optimizer({.weight_decay = 0, .kind = plan::Momentum{}});
  Pass pass(model, batch, true);
  const Blob x = random_blob(batch * 784, 1, 1);
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(batch), 3);
  for (auto _ : state) {
    pass.forward({.size = batch, .x = x.as_floats(), .labels = labels.data()},
                 memory.weight_slices->views());
    for (int layer = model->layers() - 1; layer >= 0; --layer)
      pass.backward(layer, memory.weight_slices->views(), memory.gradient_slices->views());
    if (with_update) memory.update(*momentum);
  }
  state.SetItemsProcessed(state.iterations() * batch);
}

void plain_step(benchmark::State& state) {
  kernels::use_one_compute_thread();
  PlainLoop loop(state.range(0));
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(state.range(0)), 3);
  for (auto _ : state) loop.step(labels.data(), state.range(1) != 0);
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void sizes(benchmark::internal::Benchmark* family) {
  family->ArgNames({"batch", "update"})->ArgsProduct({{64, 128}, {0, 1}});
}
BENCHMARK(plain_step)->Apply(sizes);
BENCHMARK(leeway_step)->Apply(sizes);

}  // namespace

BENCHMARK_MAIN();
