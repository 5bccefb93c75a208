// The update rate of a shard under each delay policy, on one thread: floats per second of whole
// updates with momentum, in place, and out of place as with old weights that are kept.
#include <benchmark/benchmark.h>

#include <memory>
#include <utility>

#include "bench/random_blob.hpp"
#include "policies/delay/delay_aware.hpp"
#include "tensor/blob.hpp"

namespace {

using namespace leeway;
using bench::random_blob;

/// Momentum with the policy of the plan.
std::unique_ptr<Optimizer> optimizer_of(const plan::DelayPolicy& policy) {
  Plan plan;
  plan.consistency = plan::Asp{};
  plan.optimizer = {.learning_rate = 1e-6, .kind = plan::Momentum{}};
  plan.delay_policy = policy;
  auto optimizer = make_optimizer(plan.optimizer);
  if (auto delay = make_delay_policy(plan))
    optimizer = std::make_unique<DelayAware>(std::move(optimizer), std::move(delay));
  return optimizer;
}

void update(benchmark::State& state, const plan::DelayPolicy& policy, bool in_place) {
  const std::int64_t count = state.range(0);
  const auto on = make_cpu_executor();
  const auto optimizer = optimizer_of(policy);
  Blob weights[] = {random_blob(count, 1), random_blob(count, 2)};
  Blob slots[] = {random_blob(count, 3), Blob::floats(count)};
  std::fill_n(slots[1].mutable_floats(), count, 1.0f);
  const Blob g = random_blob(count, 4), pulled = random_blob(count, 5);
  kernels::UpdateBuffers buffers{
      .count = count,
      .w_out = weights[in_place ? 0 : 1].mutable_floats(),
      .w = weights[0].as_floats(),
      .state_out = {slots[0].mutable_floats(), slots[1].mutable_floats()},
      .state = {slots[0].as_floats(), slots[1].as_floats()},
      .g = g.as_floats(),
      .pulled = pulled.as_floats()};
  const UpdateSize size{
      .weight = 0.25, .learning_rate = 1e-6, .progress = 10, .lag = 2, .largest_rate = 1e-6};
  for (auto _ : state) optimizer->update(*on, buffers, size);
  state.SetItemsProcessed(state.iterations() * count);
}

/// Blocks of 64 KiB and 4 MiB, the largest of a layout.
void blocks(benchmark::internal::Benchmark* bench) {
  bench->ArgName("floats")->Arg(16 << 10)->Arg(1 << 20);
}
BENCHMARK_CAPTURE(update, plain_in_place, plan::PlainPush{}, true)->Apply(blocks);
BENCHMARK_CAPTURE(update, plain_out_of_place, plan::PlainPush{}, false)->Apply(blocks);
BENCHMARK_CAPTURE(update, lag_scaled, plan::LagScaled{}, true)->Apply(blocks);
BENCHMARK_CAPTURE(update, delay_adaptive, plan::DelayAdaptive{}, true)->Apply(blocks);
BENCHMARK_CAPTURE(update, ordered_momentum, plan::OrderedMomentum{}, true)->Apply(blocks);
BENCHMARK_CAPTURE(update, gap_aware, plan::GapAware{}, false)->Apply(blocks);
BENCHMARK_CAPTURE(update, delay_compensated, plan::DelayCompensated{}, false)->Apply(blocks);
BENCHMARK_CAPTURE(update, adaptive_delay_compensated, (plan::DelayCompensated{2, true}), false)
    ->Apply(blocks);

}  // namespace

BENCHMARK_MAIN();
