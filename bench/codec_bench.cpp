// Speed of codecs on one thread, as memory traffic: an encoding reads the values and writes the
// bytes, accumulate() reads both arrays and writes the sum. The limits are `read`, a sum over the
// values, for encodings, which write few bytes, and `copy` for accumulate(). A copy past the caches
// writes without reading the lines first, so its traffic is higher than that of any loop.
//
//   codec_bench [--benchmark_filter=int8]
#include <benchmark/benchmark.h>

#include <algorithm>
#include <vector>

#include "core/rng.hpp"
#include "kernels/squares.hpp"
#include "policies/codec/codec.hpp"

namespace {

using namespace leeway;

std::vector<float> random_values(std::int64_t count) {
  Rng rng(1);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(rng.uniform() - 0.5);
  return values;
}

void copy(benchmark::State& state) {
  const auto values = random_values(state.range(0));
  std::vector<float> copies(values.size());
  for (auto _ : state) {
    std::copy(values.begin(), values.end(), copies.begin());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * 2 * 4);
}

void read(benchmark::State& state) {
  const auto values = random_values(state.range(0));
  for (auto _ : state) {
    double sum = kernels::sum_of_squares(values.data(), state.range(0));
    benchmark::DoNotOptimize(sum);
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * 4);
}

void encode(benchmark::State& state, const plan::Codec& spec) {
  const auto codec = make_codec(spec);
  const auto values = random_values(state.range(0));
  std::vector<std::byte> bytes(codec->size(values.size()));
  for (auto _ : state) {
    codec->encode(values, 1, bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() *
                          static_cast<std::int64_t>(values.size() * 4 + bytes.size()));
}

void accumulate(benchmark::State& state, const plan::Codec& spec) {
  const auto codec = make_codec(spec);
  auto values = random_values(state.range(0));
  std::vector<std::byte> bytes(codec->size(values.size()));
  codec->encode(values, 1, bytes);
  for (auto _ : state) {
    codec->accumulate(bytes, 1e-3f, values);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() *
                          static_cast<std::int64_t>(values.size() * 8 + bytes.size()));
}

/// 2 MiB, as the gradients of a small model, and 64 MiB, beyond the caches.
void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgName("floats")->Arg(512 << 10)->Arg(16 << 20);
}

BENCHMARK(copy)->Apply(sizes);
BENCHMARK(read)->Apply(sizes);
#define LEEWAY_CODEC(name, ...)                                            \
  BENCHMARK_CAPTURE(encode, name, plan::Codec(__VA_ARGS__))->Apply(sizes); \
  BENCHMARK_CAPTURE(accumulate, name, plan::Codec(__VA_ARGS__))->Apply(sizes)
LEEWAY_CODEC(bf16, plan::Bf16{});
LEEWAY_CODEC(fp16, plan::Fp16{});
LEEWAY_CODEC(int8, plan::Int8{});
LEEWAY_CODEC(int4, plan::Int4{});
LEEWAY_CODEC(two_bit, plan::TwoBit{0.25});
LEEWAY_CODEC(one_bit, plan::OneBit{});
LEEWAY_CODEC(top_k, plan::TopK{0.01});
LEEWAY_CODEC(random_k, plan::RandomK{0.01});
#undef LEEWAY_CODEC

}  // namespace

BENCHMARK_MAIN();
