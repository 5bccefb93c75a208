// Speed of every kernel on one device, at sizes of an MLP and of a VGG on small images, relative to
// limits measured in the same run: on one CPU core multiply-adds in registers and memory bandwidth,
// on a GPU a large single-precision product and copy bandwidth. Prints one table.
//
//   limits_bench [--device cpu] [--attention] [--probe]
//
// Each figure is the median of up to 20 rounds. A round enqueues several calls and waits for them,
// so short kernels on a GPU show the cost of a launch. "of limit" is the time at the limits (memory
// traffic or arithmetic, whichever takes longer) over the measured time; it exceeds 100% for arrays
// that fit into a cache. --attention measures only attention. --probe only prints the device. Exits
// with 77 if a GPU is requested and none is usable.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/rng.hpp"
#include "core/text.hpp"
#include "kernels/executors.hpp"
#include "kernels/peak.hpp"
#include "kernels/precision.hpp"
#include "kernels/threads.hpp"

namespace {

using namespace leeway;

struct Limits {
  double bytes_per_second, flops_per_second;
  double bf16_flops_per_second;  // on a GPU fp16 has the same limit
  double flops(Precision precision) const {
    return is_half(precision) ? bf16_flops_per_second : flops_per_second;
  }
};

/// The benchmark's table, and device memory that lives as long as the benchmark.
class Bench {
 public:
  explicit Bench(std::shared_ptr<Executor> executor) : on(std::move(executor)) {}

  /// Random numbers in [-scale, scale].
  float* floats(std::int64_t count, double scale = 1) {
    Blob host = Blob::floats(count);
    for (std::int64_t i = 0; i < count; ++i)
      host.mutable_floats()[i] = static_cast<float>(scale * (2 * rng_.uniform() - 1));
    return reinterpret_cast<float*>(bytes_of(host));
  }
  /// Random integers in [0, n).
  template <class T>
  T* whole(std::int64_t count, std::uint64_t n) {
    Blob host = Blob::allocate(static_cast<std::size_t>(count) * sizeof(T));
    T* const values = reinterpret_cast<T*>(host.mutable_data());
    for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<T>(rng_.below(n));
    return reinterpret_cast<T*>(bytes_of(host));
  }
  std::byte* bytes(std::size_t size) {
    kept_.push_back(on->allocate(size));
    return kept_.back().mutable_data();
  }
  kernels::ClassLoss* loss() {
    kept_.push_back(on->allocate_host(sizeof(kernels::ClassLoss)));
    return reinterpret_cast<kernels::ClassLoss*>(kept_.back().mutable_data());
  }
  void forget() {
    on->synchronize();
    kept_.clear();
  }

  bool is_on_cpu() const { return on->device().kind != Device::Kind::cuda; }

  /// Median seconds of one call.
  double seconds(const std::function<void()>& call) {
    constexpr int kRounds = 20, kCalls = 10;
    constexpr double kEnough = 0.5;  // seconds to measure slow calls for
    for (int i = 0; i < 3; ++i) call();
    on->synchronize();
    std::vector<double> rounds;
    const auto began = std::chrono::steady_clock::now();
    const auto since = [](std::chrono::steady_clock::time_point start) {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    while (rounds.size() < kRounds && (rounds.size() < 3 || since(began) < kEnough)) {
      const auto start = std::chrono::steady_clock::now();
      int calls = 0;
      do call();
      while (++calls < kCalls && !(is_on_cpu() && since(start) > kEnough / kRounds));
      on->synchronize();
      rounds.push_back(since(start) / calls);
    }
    std::sort(rounds.begin(), rounds.end());
    return rounds[rounds.size() / 2];
  }

  /// Measures a call and prints a line. `floats_moved`: minimal memory traffic in floats.
  void line(const std::string& name, std::int64_t floats_moved, double flops,
            const std::function<void()>& call, Precision precision = Precision::fp32) {
    const double taken = seconds(call);
    const double moved = 4.0 * static_cast<double>(floats_moved);
    const double least = std::max(moved / limits.bytes_per_second, flops / limits.flops(precision));
    std::printf("%-52s %10.1f %9.0f %10.0f %8.0f%%\n", name.c_str(), taken * 1e6,
                moved / taken * 1e-9, flops / taken * 1e-9, 100 * least / taken);
    std::fflush(stdout);
  }

  std::shared_ptr<Executor> on;
  Limits limits{};

 private:
  std::byte* bytes_of(const Blob& host) {
    std::byte* const to = bytes(host.size());
    on->upload(to, host.data(), host.size());
    on->synchronize();  // before `host` is freed
    return to;
  }

  Rng rng_{1};
  std::vector<Blob> kept_;
};

void measure_limits(Bench& bench) {
  if (bench.is_on_cpu()) {
    const auto peak = kernels::measure_peak();
    // An AVX512_BF16 instruction multiplies and adds twice as many numbers as one for f32. With AMX
    // the shares can exceed 100%.
    const double bf16_flops = kernels::multiplies_bf16() ? 2 * peak.flops : peak.flops;
    bench.limits = {peak.bytes, peak.flops, bf16_flops};
    std::cout << "limits of one core: z = x + a y over 64 MiB each " << peak.bytes * 1e-9
              << " GB/s, multiply-add in registers " << peak.flops * 1e-9 << " GFLOP/s\n\n";
    return;
  }
  constexpr std::int64_t kCopied = std::int64_t{1} << 30, kSide = 8192;
  std::byte* const to = bench.bytes(kCopied);
  const std::byte* const from = bench.bytes(kCopied);
  const double copy = bench.seconds([&] { bench.on->copy(to, from, kCopied); });
  bench.forget();
  float* const y = bench.floats(kSide * kSide);
  const float* const x = bench.floats(kSide * kSide);
  const RowSlice<const float> w{0, kSide, bench.floats(kSide * kSide)};
  const RowSlice<const float> b{0, kSide, bench.floats(kSide)};
  const double product = bench.seconds([&] {
    bench.on->linear_forward(y, x, {&w, 1}, {&b, 1}, {kSide, kSide, kSide});
  });
  bench.forget();
  const kernels::LinearShape shape{kSide, kSide, kSide, Precision::bf16};
  float* const y16 = bench.floats(kSide * kSide);
  const float* const x16 = bench.floats(kSide * kSide);
  std::byte* const packed = bench.bytes(bench.on->linear_half_form(shape).bytes);
  std::byte* const scratch = bench.bytes(bench.on->linear_half_scratch_bytes(shape));
  const RowSlice<const float> w16{0, kSide, bench.floats(kSide * kSide)};
  bench.on->linear_half_pack(packed, {&w16, 1}, shape);
  const double product_bf16 = bench.seconds(
      [&] { bench.on->linear_half_forward(y16, x16, packed, nullptr, scratch, shape); });
  bench.forget();
  const double side = static_cast<double>(kSide), flops = 2 * side * side * side;
  bench.limits = {2 * static_cast<double>(kCopied) / copy, flops / product, flops / product_bf16};
  std::cout << "limits of " << bench.on->device() << ": copy of 1 GiB "
            << bench.limits.bytes_per_second * 1e-9 << " GB/s, product of 8192 x 8192 x 8192 "
            << bench.limits.flops_per_second * 1e-9 << " GFLOP/s, rounding to bf16 included "
            << bench.limits.bf16_flops_per_second * 1e-9 << " GFLOP/s\n\n";
}

void linear(Bench& bench, std::int64_t batch, std::int64_t inputs, std::int64_t outputs) {
  const kernels::LinearShape shape{batch, inputs, outputs};
  float *const y = bench.floats(batch * outputs), *const x = bench.floats(batch * inputs);
  float *const dx = bench.floats(batch * inputs), *const weights = bench.floats(outputs * inputs);
  const RowSlice<const float> w{0, outputs, weights}, b{0, outputs, bench.floats(outputs)};
  const RowSlice<float> dw{0, outputs, bench.floats(outputs * inputs)};
  const RowSlice<float> db{0, outputs, bench.floats(outputs)};
  const auto name = concat("linear ", inputs, " -> ", outputs, ", batch ", batch);
  const std::int64_t ends = batch * (inputs + outputs), of_weights = outputs * (inputs + 1);
  const double flops = 2.0 * static_cast<double>(batch * inputs * outputs);
  bench.line(name + ", forward", ends + of_weights, flops, [&] {
    bench.on->linear_forward(y, x, {&w, 1}, {&b, 1}, shape);
  });
  bench.line(name + ", backward", ends + batch * inputs + 2 * of_weights, 2 * flops, [&] {
    bench.on->linear_backward(dx, {&dw, 1}, {&db, 1}, y, x, {&w, 1}, shape);
  });
  bench.forget();
}

void linear_half(Bench& bench, std::int64_t batch, std::int64_t inputs, std::int64_t outputs,
                 Precision precision) {
  const kernels::LinearShape shape{batch, inputs, outputs, precision};
  float *const y = bench.floats(batch * outputs), *const x = bench.floats(batch * inputs);
  float *const dx = bench.floats(batch * inputs), *const bias = bench.floats(outputs);
  const RowSlice<const float> w{0, outputs, bench.floats(outputs * inputs)};
  const RowSlice<float> dw{0, outputs, bench.floats(outputs * inputs)};
  float* const db = bench.floats(outputs);
  Executor& on = *bench.on;
  std::byte* const packed = bench.bytes(on.linear_half_form(shape).bytes);
  std::byte* const scratch = bench.bytes(on.linear_half_scratch_bytes(shape));
  const auto name =
      concat("linear ", inputs, " -> ", outputs, " in ", name_of(precision), ", batch ", batch);
  const std::int64_t ends = batch * (inputs + outputs), of_weights = outputs * inputs;
  const double flops = 2.0 * static_cast<double>(batch * inputs * outputs);
  bench.line(name + ", rounding weights", of_weights + of_weights / 2, 0, [&] {
    on.linear_half_pack(packed, {&w, 1}, shape);
  });
  bench.line(
      name + ", forward", ends + of_weights / 2, flops,
      [&] { on.linear_half_forward(y, x, packed, bias, scratch, shape); }, precision);
  bench.line(
      name + ", backward", ends + batch * inputs + of_weights / 2 + of_weights, 2 * flops,
      [&] {
        on.linear_half_backward(dx, {&dw, 1}, db, y, x, packed, scratch, shape);
      },
      precision);
  bench.forget();
}

void conv2d(Bench& bench, std::int64_t batch, std::int64_t channels, std::int64_t outputs,
            std::int64_t side, Precision precision = Precision::fp32) {
  const kernels::Conv2dShape shape{.batch = batch,
                                   .channels = channels,
                                   .height = side,
                                   .width = side,
                                   .outputs = outputs,
                                   .kernel = 3,
                                   .padding = 1,
                                   .precision = precision};
  const std::int64_t pixels = batch * side * side, weights = shape.weight_count();
  float *const y = bench.floats(pixels * outputs), *const x = bench.floats(pixels * channels);
  float* const dx = bench.floats(pixels * channels);
  const float* const bias = bench.floats(outputs);
  const RowSlice<const float> w{0, outputs, bench.floats(weights, 0.1)};
  const RowSlice<float> dw{0, outputs, bench.floats(weights)};
  float* const dbias = bench.floats(outputs);
  std::byte* const scratch = bench.bytes(bench.on->conv2d_scratch_bytes(shape));
  const auto packed_for = [&](kernels::ConvPass pass) {
    std::byte* const packed = bench.bytes(bench.on->conv2d_form(shape, pass).bytes);
    bench.on->conv2d_pack(packed, {&w, 1}, shape, pass);
    return packed;
  };
  std::byte* const packed = packed_for(kernels::ConvPass::forward);
  const std::byte* const packed_backward = packed_for(kernels::ConvPass::backward);
  const auto name = concat("conv2d ", channels, " -> ", outputs, " at ", side, " x ", side,
                           precision == Precision::fp32 ? "" : concat(" in ", name_of(precision)),
                           ", batch ", batch);
  const std::int64_t ends = pixels * (channels + outputs);
  const auto flops = static_cast<double>(shape.flops());
  bench.line(name + ", packing weights", 2 * weights, 0, [&] {
    bench.on->conv2d_pack(packed, {&w, 1}, shape, kernels::ConvPass::forward);
  });
  bench.line(
      name + ", forward", ends + weights, flops,
      [&] { bench.on->conv2d_forward(y, x, packed, bias, scratch, shape); }, precision);
  bench.line(
      name + ", backward", ends + pixels * channels + 2 * weights, 2 * flops,
      [&] {
        bench.on->conv2d_backward(dx, {&dw, 1}, dbias, y, x, packed_backward, scratch, shape);
      },
      precision);
  bench.forget();
}

void pools_and_norms(Bench& bench, std::int64_t batch) {
  const std::int64_t channels = 64, side = 32, rows = batch * side * side, count = rows * channels;
  float *const y = bench.floats(count), *const x = bench.floats(count);
  float *const mean = bench.floats(rows), *const inv_std = bench.floats(rows);
  float *const gamma = bench.floats(channels), *const beta = bench.floats(channels);
  auto* const from = reinterpret_cast<std::uint8_t*>(bench.bytes(static_cast<std::size_t>(count)));
  const kernels::NormShape norm{rows, channels};
  const kernels::Pool2dShape pool{batch, channels, side, side};
  Executor& on = *bench.on;
  const auto at = concat(" 64 at 32 x 32, batch ", batch);
  bench.line("batch_norm" + at + ", forward", 3 * count, 0,
             [&] { on.batch_norm_forward(y, mean, inv_std, x, gamma, beta, norm); });
  bench.line("batch_norm" + at + ", backward", 5 * count, 0,
             [&] { on.batch_norm_backward(y, gamma, beta, y, x, mean, inv_std, gamma, norm); });
  bench.line("layer_norm" + at + ", forward", 2 * count, 0,
             [&] { on.layer_norm_forward(y, mean, inv_std, x, gamma, beta, norm); });
  bench.line("layer_norm" + at + ", backward", 5 * count, 0,
             [&] { on.layer_norm_backward(y, gamma, beta, y, x, mean, inv_std, gamma, norm); });
  bench.line("max_pool2d" + at + ", forward", count + count / 4 + count / 16, 0,
             [&] { on.max_pool2d_forward(y, from, x, pool); });
  bench.line("max_pool2d" + at + ", backward", count + count / 4 + count / 16, 0,
             [&] { on.max_pool2d_backward(x, y, from, pool); });
  bench.line("avg_pool2d" + at + ", forward", count + count / 4, 0,
             [&] { on.avg_pool2d_forward(y, x, pool); });
  bench.line("avg_pool2d" + at + ", backward", count + count / 4, 0,
             [&] { on.avg_pool2d_backward(x, y, pool); });
  bench.line("to_channels_last" + at, 2 * count, 0,
             [&] { on.to_channels_last(y, x, batch, channels, side * side); });
  bench.forget();
}

void elementwise(Bench& bench, std::int64_t batch) {
  const std::int64_t features = 64 * 32 * 32, count = batch * features;
  float *const y = bench.floats(count), *const x = bench.floats(count);
  const float* const dy = bench.floats(count);
  const auto* const keys = bench.whole<std::uint64_t>(batch, ~0ull);
  Executor& on = *bench.on;
  const auto at = concat(" of ", features, ", batch ", batch);
  bench.line("relu" + at + ", forward", 2 * count, 0, [&] { on.relu_forward(y, x, count); });
  bench.line("relu" + at + ", backward", 3 * count, 0, [&] { on.relu_backward(y, dy, x, count); });
  bench.line("gelu" + at + ", forward", 2 * count, 0,
             [&] { on.activation_forward(kernels::Activation::gelu, y, x, count); });
  bench.line("gelu" + at + ", backward", 3 * count, 0,
             [&] { on.activation_backward(kernels::Activation::gelu, y, dy, x, count); });
  bench.line("dropout" + at, 2 * count, 0, [&] {
    on.dropout(y, x, keys, {batch, features, 0.5f, 1});
  });
  bench.forget();
}

void losses(Bench& bench, std::int64_t batch, std::int64_t classes) {
  const std::int64_t count = batch * classes;
  float *const dy = bench.floats(count), *const y = bench.floats(count, 5);
  const float* const t = bench.whole<float>(count, 2);
  const auto* const labels = bench.whole<std::int32_t>(batch, static_cast<std::uint64_t>(classes));
  kernels::ClassLoss* const result = bench.loss();
  Executor& on = *bench.on;
  const auto at = concat(" of ", classes, ", batch ", batch);
  bench.line("softmax_cross_entropy" + at, 2 * count, 0,
             [&] { on.softmax_cross_entropy(result, dy, y, labels, batch, classes, 1); });
  bench.line("sigmoid_cross_entropy" + at, 3 * count, 0,
             [&] { on.sigmoid_cross_entropy(result, dy, y, t, count, 1); });
  bench.line("mean_squared_error" + at, 3 * count, 0,
             [&] { on.mean_squared_error(result, dy, y, t, count, 1); });
  bench.forget();
}

void embedding(Bench& bench, std::int64_t batch) {
  const std::int64_t vocabulary = 10000, features = 256, tokens = batch * 32;
  float* const y = bench.floats(tokens * features);
  const float* const names = bench.whole<float>(tokens, 10000);
  const RowSlice<const float> w{0, vocabulary, bench.floats(vocabulary * features)};
  const RowSlice<float> dw{0, vocabulary, bench.floats(vocabulary * features)};
  const kernels::EmbeddingShape shape{tokens, vocabulary, features};
  const auto name = concat("embedding 10000 x 256, 32 tokens, batch ", batch);
  bench.line(name + ", forward", 2 * tokens * features, 0, [&] {
    bench.on->embedding_forward(y, names, {&w, 1}, shape);
  });
  bench.line(name + ", backward", (vocabulary + 2 * tokens) * features, 0, [&] {
    bench.on->embedding_backward({&dw, 1}, y, names, shape);
  });
  bench.forget();
}

/// Counts only the arithmetic of unmasked pairs of tokens.
void attention(Bench& bench, const kernels::AttentionShape& shape) {
  const std::int64_t outputs = shape.batch * shape.tokens * shape.features;
  float *const x = bench.floats(3 * outputs), *const dx = bench.floats(3 * outputs);
  float *const y = bench.floats(outputs), *const dy = bench.floats(outputs);
  float* const log_sum = bench.floats(shape.batch * shape.tokens * shape.heads);
  Executor& on = *bench.on;
  std::byte* const scratch = bench.bytes(on.attention_scratch_bytes(shape));
  const auto name = concat("attention ", shape.tokens, " tokens, ", shape.heads, " x ",
                           shape.head_features(), ", batch ", shape.batch);
  bench.line(name + ", forward", 4 * outputs, shape.flops(),
             [&] { on.attention_forward(y, log_sum, x, scratch, shape); });
  bench.line(name + ", backward", 8 * outputs, 5 * shape.flops() / 2,
             [&] { on.attention_backward(dx, dy, x, y, log_sum, scratch, shape); });
  bench.forget();
}

void weights(Bench& bench, std::int64_t count) {
  float *const w = bench.floats(count, 0.1), *const g = bench.floats(count, 0.1);
  float *const m = bench.floats(count, 0), *const v = bench.floats(count, 0);
  kernels::UpdateBuffers buffers{.count = count, .w_out = w, .w = w, .g = g};
  buffers.state_out[0] = m, buffers.state_out[1] = v;
  buffers.state[0] = m, buffers.state[1] = v;
  Executor& on = *bench.on;
  const auto of = concat(" of ", count, " weights");
  bench.line("accumulate" + of, 3 * count, 0,
             [&] { on.accumulate(m, g, 1e-9f, count, kernels::Write::add); });
  bench.line("sgd" + of, 3 * count, 0, [&] { on.update(buffers, kernels::SgdFormula{1e-9f, 0}); });
  bench.line("momentum" + of, 5 * count, 0, [&] {
    on.update(buffers, kernels::MomentumFormula{1e-9f, 0, 0.9f, 1});
  });
  bench.line("adam" + of, 7 * count, 0, [&] {
    on.update(buffers, kernels::AdamFormula{1e-9f, 0, 1, 0.9f, 0.1f, 0.99f, 0.01f, 1, 1e-8f});
  });
  bench.line("find_non_finite" + of, count, 0, [&] { on.find_non_finite(w, count); });
  bench.forget();
}

/// Pushes with error feedback: an encoding reads gradient and residual, and writes codes and the
/// new residual.
void encodings(Bench& bench, std::int64_t count) {
  using Kind = kernels::Encoding::Kind;
  const std::pair<const char*, kernels::Encoding> all[] = {{"bf16", {Kind::bf16}},
                                                           {"f16", {Kind::f16}},
                                                           {"int8", {Kind::int8}},
                                                           {"int4", {Kind::int4}},
                                                           {"two_bit", {Kind::two_bit, 0.25f}},
                                                           {"one_bit", {Kind::one_bit}}};
  float *const rest = bench.floats(count), *const residual = bench.floats(count, 0.1);
  const float* const gradient = bench.floats(count);
  for (const auto& [name, encoding] : all) {
    const std::size_t size = encoding.bytes(static_cast<std::size_t>(count));
    const kernels::EncodingBuffers buffers{.count = count,
                                           .bytes = bench.bytes(size),
                                           .rest_out = rest,
                                           .values = gradient,
                                           .residual = residual};
    bench.line(concat("encode ", count, " values, ", name),
               3 * count + static_cast<std::int64_t>(size / sizeof(float)), 0,
               [&] { bench.on->encode(buffers, encoding); });
  }
  bench.forget();
}

void run(Bench& bench, bool only_attention) {
  measure_limits(bench);
  std::printf("%-52s %10s %9s %10s %9s\n", "kernel", "us", "GB/s", "GFLOP/s", "of limit");
  attention(bench, {16, 64, 4, 128});
  attention(bench, {8, 256, 8, 512});
  attention(bench, {2, 1024, 12, 768});
  if (only_attention) return;
  for (const std::int64_t batch : {64, 512}) {
    if (batch > 64 && bench.is_on_cpu()) break;  // no faster than 64, and slow to measure
    linear(bench, batch, 784, 512);
    linear(bench, batch, 512, 256);
    linear(bench, batch, 4096, 4096);
    linear_half(bench, batch, 784, 512, Precision::bf16);
    linear_half(bench, batch, 4096, 4096, Precision::bf16);
    if (!bench.is_on_cpu()) linear_half(bench, batch, 4096, 4096, Precision::fp16);
    conv2d(bench, batch, 3, 64, 32);
    conv2d(bench, batch, 64, 64, 32);
    conv2d(bench, batch, 128, 128, 16);
    conv2d(bench, batch, 256, 256, 8);
    conv2d(bench, batch, 512, 512, 4);
    conv2d(bench, batch, 64, 64, 32, Precision::bf16);
    conv2d(bench, batch, 256, 256, 8, Precision::bf16);
    pools_and_norms(bench, batch);
    elementwise(bench, batch);
    losses(bench, batch, 10);
    losses(bench, batch, 1000);
    embedding(bench, batch);
  }
  for (const std::int64_t count : {1 << 20, 25 << 20}) {
    weights(bench, count);
    encodings(bench, count);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string device = "cpu";
  bool probe = false, only_attention = false;
  CLI::App app("Every family of kernels against the limits of the device.");
  app.add_option("--device", device, "cpu, cuda or cuda:1");
  app.add_flag("--probe", probe, "only print the device");
  app.add_flag("--attention", only_attention, "only attention");
  CLI11_PARSE(app, argc, argv);
  try {
    const auto where = parse_device(device);
    if (!where) throw std::runtime_error(where.error().text);
    if (where->kind == Device::Kind::cuda) {
      if (const std::string why = cuda_unavailable(); !why.empty()) {
        std::cerr << "limits_bench: no GPU: " << why << '\n';
        return 77;
      }
    }
    kernels::use_one_compute_thread();
    const auto executor = make_executor(*where);
    if (!executor) throw std::runtime_error(executor.error().text);
    Bench bench(*executor);
    if (probe) {
      std::cout << bench.on->device() << '\n';
    } else {
      run(bench, only_attention);
    }
  } catch (const std::exception& error) {
    std::cerr << "limits_bench: " << error.what() << '\n';
    return 1;
  }
}
