// Training steps of the MLP 784-512-256-10 on one thread: Leeway's Pass and optimizer against a
// plain loop over oneDNN's sgemm, the upper bound for any runtime. To compare them, run with
// --benchmark_enable_random_interleaving=true.
#include <benchmark/benchmark.h>

#include "bench/model_memory.hpp"
#include "bench/plain_loop.hpp"
#include "kernels/threads.hpp"

namespace {

using namespace leeway;
using bench::PlainLoop;
using bench::random_blob;

void leeway_step(benchmark::State& state) {
  kernels::use_one_compute_thread();
  const std::int64_t batch = state.range(0);
  const bool with_update = state.range(1) != 0;
  const auto model = *Model::build({plan::Flatten{}, plan::Linear{512}, plan::Relu{},
                                    plan::Linear{256}, plan::Relu{}, plan::Linear{10}},
                                   plan::Loss::softmax_cross_entropy, {1, 28, 28}, 10, 0);
  bench::ModelMemory memory(model, make_cpu_executor());
  const auto momentum = make_optimizer({.weight_decay = 0, .kind = plan::Momentum{}});
  Pass pass(model, batch, true);
  const Blob x = random_blob(batch * 784, 1, 1);
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(batch), 3);
  for (auto _ : state)
    memory.step(pass, {.size = batch, .x = x.as_floats(), .labels = labels.data()},
                with_update ? momentum.get() : nullptr);
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
