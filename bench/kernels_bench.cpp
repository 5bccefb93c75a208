// Speed of kernels on one thread: FLOP/s of matrix products, bytes/s of memory traffic otherwise.
#include <benchmark/benchmark.h>

#include "bench/random_blob.hpp"
#include "kernels/accumulate.hpp"
#include "kernels/finite.hpp"
#include "kernels/linear.hpp"
#include "kernels/relu.hpp"
#include "kernels/softmax_cross_entropy.hpp"
#include "kernels/threads.hpp"
#include "kernels/update.hpp"
#include "tensor/blob.hpp"

namespace {

using namespace leeway;
using bench::random_blob;

void count_flops(benchmark::State& state, double flops) {
  state.counters["FLOP"] = benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}

void count_bytes(benchmark::State& state, std::int64_t streams, std::int64_t floats) {
  state.SetBytesProcessed(state.iterations() * streams * floats *
                          static_cast<std::int64_t>(sizeof(float)));
}

struct LinearData {
  explicit LinearData(const benchmark::State& state)
      : shape{state.range(0), state.range(1), state.range(2)},
        x(random_blob(shape.batch * shape.inputs, 1)),
        y(random_blob(shape.batch * shape.outputs, 2)),
        weight(random_blob(shape.inputs * shape.outputs, 3)),
        bias(random_blob(shape.outputs, 4)),
        dx(random_blob(shape.batch * shape.inputs, 5)),
        dweight(random_blob(shape.inputs * shape.outputs, 6)),
        dbias(random_blob(shape.outputs, 7)) {
    kernels::use_one_compute_thread();
  }
  double flops() const {
    return 2.0 * static_cast<double>(shape.batch) * static_cast<double>(shape.inputs) *
           static_cast<double>(shape.outputs);
  }
  kernels::LinearShape shape;
  Blob x, y, weight, bias, dx, dweight, dbias;
  RowSlice<const float> w{0, shape.outputs, weight.as_floats()},
      b{0, shape.outputs, bias.as_floats()};
  RowSlice<float> dw{0, shape.outputs, dweight.mutable_floats()},
      db{0, shape.outputs, dbias.mutable_floats()};
};

void linear_forward(benchmark::State& state) {
  LinearData d(state);
  for (auto _ : state)
    kernels::linear_forward(d.y.mutable_floats(), d.x.as_floats(), {&d.w, 1}, {&d.b, 1}, d.shape);
  count_flops(state, d.flops());
}

void linear_backward(benchmark::State& state) {
  LinearData d(state);
  for (auto _ : state)
    kernels::linear_backward(d.dx.mutable_floats(), {&d.dw, 1}, {&d.db, 1}, d.y.as_floats(),
                             d.x.as_floats(), {&d.w, 1}, d.shape);
  count_flops(state, 2 * d.flops());
}

void linear_shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"B", "I", "O"});
  for (const auto& [inputs, outputs] : {std::pair{784, 512}, {512, 256}, {256, 10}, {1024, 1024}})
    bench->Args({64, inputs, outputs});
}
BENCHMARK(linear_forward)->Apply(linear_shapes);
BENCHMARK(linear_backward)->Apply(linear_shapes);

void relu_forward(benchmark::State& state) {
  Blob x = random_blob(state.range(0), 1);
  for (auto _ : state) kernels::relu_forward(x.mutable_floats(), x.as_floats(), state.range(0));
  count_bytes(state, 2, state.range(0));
}

void relu_backward(benchmark::State& state) {
  const Blob y = random_blob(state.range(0), 1);
  Blob dy = random_blob(state.range(0), 2);
  for (auto _ : state)
    kernels::relu_backward(dy.mutable_floats(), dy.as_floats(), y.as_floats(), state.range(0));
  count_bytes(state, 3, state.range(0));
}

void accumulate(benchmark::State& state) {
  const Blob g = random_blob(state.range(0), 1);
  Blob sum = random_blob(state.range(0), 2);
  for (auto _ : state)
    kernels::accumulate(sum.mutable_floats(), g.as_floats(), 1e-3f, state.range(0),
                        kernels::Write::add);
  count_bytes(state, 3, state.range(0));
}

void find_non_finite(benchmark::State& state) {
  const Blob x = random_blob(state.range(0), 1);
  for (auto _ : state)
    benchmark::DoNotOptimize(kernels::find_non_finite(x.as_floats(), state.range(0)));
  count_bytes(state, 1, state.range(0));
}

void softmax_cross_entropy(benchmark::State& state) {
  const std::int64_t batch = state.range(0), classes = state.range(1);
  const Blob logits = random_blob(batch * classes, 1);
  Blob gradient = random_blob(batch * classes, 2);
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(batch), 0);
  for (auto _ : state)
    benchmark::DoNotOptimize(kernels::softmax_cross_entropy(
        gradient.mutable_floats(), logits.as_floats(), labels.data(), batch, classes));
  state.SetItemsProcessed(state.iterations() * batch * classes);
}

/// Updates range(0) floats by `formula`.
template <class Formula>
void update(benchmark::State& state, Formula formula, bool in_place) {
  const std::int64_t count = state.range(0);
  Blob arrays[] = {random_blob(count, 1), random_blob(count, 2), random_blob(count, 3),
                   random_blob(count, 4), random_blob(count, 5), random_blob(count, 6)};
  const Blob g = random_blob(count, 7);
  std::fill_n(arrays[2].mutable_floats(), count, 1.0f);
  const auto at = [&](int i) { return arrays[i].mutable_floats(); };
  const int out = in_place ? 0 : 3;
  const kernels::UpdateBuffers buffers{.count = count,
                                       .w_out = at(out),
                                       .w = at(0),
                                       .state_out = {at(out + 1), at(out + 2)},
                                       .state = {at(1), at(2)},
                                       .g = g.as_floats()};
  for (auto _ : state) kernels::update(buffers, formula);
  count_bytes(state, 3 + 2 * Formula::kSlots, count);
}

constexpr kernels::SgdFormula kSgd{1e-6f, 0};
constexpr kernels::MomentumFormula kMomentum{1e-6f, 0, 0.9f, 1};
constexpr kernels::AdamFormula kAdam{1e-6f, 0, 1, 0.9f, 0.1f, 0.999f, 0.001f, 1, 1e-8f};

/// Arrays of 64 KiB to 64 MiB: within the caches and beyond.
void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgName("floats")->RangeMultiplier(8)->Range(16 << 10, 16 << 20);
}
BENCHMARK(relu_forward)->Apply(sizes);
BENCHMARK(relu_backward)->Apply(sizes);
BENCHMARK(accumulate)->Apply(sizes);
BENCHMARK(find_non_finite)->Apply(sizes);
BENCHMARK_CAPTURE(update, sgd_in_place, kSgd, true)->Apply(sizes);
BENCHMARK_CAPTURE(update, momentum_in_place, kMomentum, true)->Apply(sizes);
BENCHMARK_CAPTURE(update, momentum_out_of_place, kMomentum, false)->Apply(sizes);
BENCHMARK_CAPTURE(update, adam_in_place, kAdam, true)->Apply(sizes);
BENCHMARK(softmax_cross_entropy)->ArgNames({"B", "C"})->Args({64, 10})->Args({64, 1000});

}  // namespace

BENCHMARK_MAIN();
