// Compares GPU kernels with CPU kernels on random sizes, if no other test compares them with their
// definition, and checks the synchronisation of two queues. Without a GPU the tests pass with a
// warning.
#include <catch2/catch.hpp>
#include <functional>
#include <iterator>

#include "tests/kernels/executors.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

std::shared_ptr<Executor> gpu_or_none() {
  if (const auto why = cuda_unavailable(); !why.empty()) {
    WARN("no GPU: " << why);
    return nullptr;
  }
  auto executor = make_executor({Device::Kind::cuda, 0});
  REQUIRE(executor);
  return *executor;
}

/// A random number in [least, most].
std::int64_t any_of(Rng& rng, std::int64_t least, std::int64_t most) {
  return least + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(most - least + 1)));
}

void append(Floats& all, const Floats& more) {
  all.insert(all.end(), more.begin(), more.end());
}

bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

/// Like worst_error, but NaN equals NaN, and infinities equal themselves.
double distance(Floats found, Floats expected) {
  for (std::size_t i = 0; i < std::min(found.size(), expected.size()); ++i)
    if ((std::isnan(found[i]) && std::isnan(expected[i])) ||
        (std::isinf(found[i]) && found[i] == expected[i]))
      found[i] = expected[i] = 0;
  return worst_error(found, expected);
}

/// Draws its inputs from the generator and returns all of its outputs.
using Computation = std::function<Floats(Executor&, Rng)>;

/// Requires that CPU and GPU agree and that the GPU repeats its bits.
void compare(int rounds, double tolerance, const Computation& compute) {
  const auto gpu = gpu_or_none();
  if (!gpu) return;
  const auto cpu = make_cpu_executor();
  for (int seed = 1; seed <= rounds; ++seed) {
    CAPTURE(seed);
    const Rng rng(static_cast<std::uint64_t>(seed));
    const Floats found = compute(*gpu, rng);
    CHECK(same_bits(compute(*gpu, rng), found));
    REQUIRE(distance(found, compute(*cpu, rng)) <= tolerance);
  }
}

Floats linear(Executor& executor, Rng rng) {
  const std::int64_t batch = rng.one_in(5) ? 0 : any_of(rng, 1, 300);
  const kernels::LinearShape s{batch, any_of(rng, 1, 40), any_of(rng, 1, 50)};
  const bool with_bias = rng.one_in(2);
  Rng* const split = rng.one_in(2) ? &rng : nullptr;
  const Floats bs = random_floats(rng, s.outputs);
  const SlicedArray<const float> weight(executor, random_floats(rng, s.outputs * s.inputs),
                                        s.outputs, s.inputs, split);
  const SlicedArray<const float> bias(executor, bs, with_bias ? s.outputs : 0, 1, split);
  const SlicedArray<float> dweight(executor, poisoned(s.outputs * s.inputs), s.outputs, s.inputs,
                                   split);
  const SlicedArray<float> dbias(executor, poisoned(s.outputs), with_bias ? s.outputs : 0, 1,
                                 split);
  const Array<float> x(executor, random_floats(rng, s.batch * s.inputs));
  const Array<float> dy(executor, random_floats(rng, s.batch * s.outputs));
  auto y = Array<float>::poisoned(executor, s.batch * s.outputs);
  auto dx = Array<float>::poisoned(executor, s.batch * s.inputs);
  executor.linear_forward(y.data(), x.data(), weight.slices(), bias.slices(), s);
  executor.linear_backward(dx.data(), dweight.slices(), dbias.slices(), dy.data(), x.data(),
                           weight.slices(), s);
  Floats all = y.read();
  for (const Floats& more : {dx.read(), dweight.read(), dbias.read()}) append(all, more);
  return all;
}

Floats convolution(Executor& executor, Rng rng, const kernels::Conv2dShape& s) {
  const std::int64_t inputs = s.batch * s.channels * s.height * s.width;
  const std::int64_t outputs = s.batch * s.outputs * s.out_height() * s.out_width();
  const std::int64_t row = s.weight_count() / s.outputs;
  const SlicedArray<const float> w(executor, random_floats(rng, s.weight_count()), s.outputs, row,
                                   nullptr);
  const SlicedArray<float> dw(executor, poisoned(s.weight_count()), s.outputs, row, nullptr);
  const Array<float> x(executor, random_floats(rng, inputs));
  const Array<float> bias(executor, random_floats(rng, s.outputs));
  auto y = Array<float>::poisoned(executor, outputs), dx = Array<float>::poisoned(executor, inputs);
  auto dbias = Array<float>::poisoned(executor, s.outputs);
  const auto bytes = [&](std::size_t count) {
    return Array<std::byte>::poisoned(executor, static_cast<std::int64_t>(count));
  };
  auto scratch = bytes(executor.conv2d_scratch_bytes(s));
  const auto packed = [&](kernels::ConvPass pass) {
    auto form = bytes(executor.conv2d_form(s, pass).bytes);
    executor.conv2d_pack(form.data(), w.slices(), s, pass);
    return form;
  };
  const auto forward = packed(kernels::ConvPass::forward);
  const auto backward = packed(kernels::ConvPass::backward);
  executor.conv2d_forward(y.data(), x.data(), forward.data(), bias.data(), scratch.data(), s);
  executor.conv2d_backward(dx.data(), dw.slices(), dbias.data(), y.data(), x.data(),
                           backward.data(), scratch.data(), s);
  Floats all = y.read();
  for (const Floats& more : {dx.read(), dw.read(), dbias.read()}) append(all, more);
  return all;
}

/// Includes addresses that are not 16-byte aligned, and NaN.
Floats elementwise(Executor& executor, Rng rng) {
  const std::int64_t count = any_of(rng, 0, 700), skip = any_of(rng, 0, 3);
  Floats values = random_floats(rng, skip + count, 6);
  for (float& value : values)
    if (rng.one_in(50)) value = NAN;
  const Array<float> xs(executor, values), dys(executor, random_floats(rng, skip + count));
  const float *const x = xs.data() + skip, *const dy = dys.data() + skip;
  auto y = Array<float>::poisoned(executor, count);
  auto z = Array<float>::poisoned(executor, skip + count);
  Floats all;
  executor.relu_forward(y.data(), x, count);
  executor.relu_backward(z.data() + skip, dy, x, count);
  append(all, y.read());
  append(all, z.read());
  executor.accumulate(y.data(), dy, 0.3f, count, kernels::Write::assign);
  append(all, y.read());
  executor.accumulate(y.data(), x, 0.7f, count, kernels::Write::add);
  append(all, y.read());
  for (const float* numbers : {x, dy})
    all.push_back(static_cast<float>(executor.find_non_finite(numbers, count)));
  all.push_back(static_cast<float>(executor.sum_of_squares(dy, count)));
  return all;
}

/// Logits have many equal values and sometimes one that is not finite.
Floats losses(Executor& executor, Rng rng) {
  const std::int64_t batch = any_of(rng, 0, 120), classes = any_of(rng, 1, 90);
  const std::int64_t count = batch * classes;
  Floats values = random_floats(rng, count, 5);
  for (float& value : values) value = std::round(2 * value);
  if (count > 0 && rng.one_in(4))
    values[rng.below(values.size())] = rng.one_in(2) ? NAN : -INFINITY;
  std::vector<std::int32_t> names;
  for (std::int64_t b = 0; b < batch; ++b)
    names.push_back(static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(classes))));
  const Array<float> y(executor, values), t(executor, Floats(values.size(), 0.75f));
  const Array<std::int32_t> labels(executor, names);
  auto dy = Array<float>::poisoned(executor, count);
  LossResult loss(executor);
  Floats all;
  const auto keep = [&](bool with_gradient) {
    const kernels::ClassLoss result = loss.read();
    all.push_back(static_cast<float>(result.loss));
    all.push_back(static_cast<float>(result.correct));
    if (with_gradient) append(all, dy.read());
  };
  const float scale = rng.one_in(2) ? 1.0f : 300.0f;
  for (const bool with_gradient : {true, false}) {
    float* const gradient = with_gradient ? dy.data() : nullptr;
    executor.softmax_cross_entropy(loss.data(), gradient, y.data(), labels.data(), batch, classes,
                                   scale);
    keep(with_gradient);
    executor.sigmoid_cross_entropy(loss.data(), gradient, y.data(), t.data(), count, scale);
    keep(with_gradient);
    executor.mean_squared_error(loss.data(), gradient, y.data(), t.data(), count, scale);
    keep(with_gradient);
  }
  return all;
}

kernels::Clipping some_clipping(Rng& rng) {
  return rng.one_in(2) ? kernels::Clipping{0.5f, 0.3f} : kernels::Clipping{};
}

/// Every formula, in place and out of place, aligned and unaligned.
Floats updates(Executor& executor, Rng rng) {
  const std::int64_t count = any_of(rng, 0, 400), skip = any_of(rng, 0, 1);
  const kernels::UpdateFormula formulas[] = {
      kernels::SgdFormula{0.1f, 0.01f},
      kernels::MomentumFormula{0.1f, 0.01f, 0.9f, 0.8f},
      kernels::OrderedMomentumFormula{0.1f, 0.01f, 0.9f, 0.8f, 0.2f},
      kernels::NesterovFormula{0.1f, 0.01f, 0.9f, 0.8f},
      kernels::DelayedNesterovFormula{0.01f, 0.25f, 0.05f, 0.9f, 0.5f, 0.09f, 0},
      kernels::AdamFormula{0.1f, 0.01f, 0.99f, 0.9f, 0.1f, 0.99f, 0.01f, 1.5f, 1e-3f},
      kernels::AmsGradFormula{{0.1f, 0.01f, 0.99f, 0.9f, 0.1f, 0.99f, 0.01f, 1.5f, 1e-3f}},
      kernels::NAdamFormula{0.1f, 0.2f, 0.01f, 0.99f, 0.9f, 0.1f, 0.99f, 0.01f, 1.5f, 1e-3f},
      kernels::LionFormula{0.1f, 0.99f, 0.9f, 0.99f, 0.01f},
      kernels::AdaGradFormula{0.1f, 0.01f, 0.5f, 1e-3f},
      kernels::AverageFormula{0.2f}};
  Floats all;
  for (const auto& formula : formulas) {
    Floats state = random_floats(rng, skip + count);
    for (float& value : state) value = std::abs(value);
    Array<float> w(executor, random_floats(rng, skip + count)), a(executor, state),
        b(executor, state), c(executor, state);
    const Array<float> g(executor, random_floats(rng, skip + count));
    auto apart = Array<float>::poisoned(executor, skip + count);
    const bool in_place = rng.one_in(2);
    executor.update({.count = count,
                     .w_out = (in_place ? w : apart).data() + skip,
                     .w = w.data() + skip,
                     .state_out = {a.data() + skip, b.data() + skip, c.data() + skip},
                     .state = {a.data() + skip, b.data() + skip, c.data() + skip},
                     .g = g.data() + skip,
                     .clipping = some_clipping(rng)},
                    formula);
    for (const auto* array : {&w, &apart, &a, &b, &c}) append(all, array->read());
  }
  return all;
}

Floats delay_corrections(Executor& executor, Rng rng) {
  const std::int64_t count = any_of(rng, 0, 400);
  const kernels::DelayFormula formulas[] = {
      kernels::GapFormula{0.9f, 0.1f, 0.5f, 1e-3f}, kernels::CompensationFormula{0.5f},
      kernels::AdaptiveCompensationFormula{0.5f, 0.9f, 0.1f, 1e-3f}, kernels::DistanceFormula{}};
  Floats all;
  for (const auto& formula : formulas) {
    Floats squares = random_floats(rng, count);
    for (float& value : squares) value = std::abs(value);
    const Array<float> w(executor, random_floats(rng, count)),
        pulled(executor, random_floats(rng, count)), g(executor, random_floats(rng, count)),
        step(executor, random_floats(rng, count));
    Array<float> mean(executor, squares);
    auto out = Array<float>::poisoned(executor, count);
    executor.correct_delay({.count = count,
                            .g_out = out.data(),
                            .g = g.data(),
                            .w = w.data(),
                            .pulled = pulled.data(),
                            .step = rng.one_in(2) ? step.data() : nullptr,
                            .mean_out = mean.data(),
                            .mean = mean.data(),
                            .clipping = some_clipping(rng)},
                           formula);
    for (const auto* array : {&out, &mean}) append(all, array->read());
  }
  return all;
}

}  // namespace

TEST_CASE("linear on a GPU matches the CPU", "[cuda]") {
  compare(30, 1e-4, linear);
}

TEST_CASE("a convolution on a GPU handles more images than fit into scratch memory", "[cuda]") {
  // 75 MiB of windows, more than one call of im2col writes.
  const kernels::Conv2dShape shape{.batch = 9,
                                   .channels = 60,
                                   .height = 62,
                                   .width = 62,
                                   .outputs = 2,
                                   .kernel = 3,
                                   .padding = 1};
  compare(1, 1e-3, [&](Executor& executor, Rng rng) { return convolution(executor, rng, shape); });
}

TEST_CASE("elementwise kernels on a GPU match the CPU, also for NaN", "[cuda]") {
  compare(60, 1e-6, elementwise);
}

TEST_CASE("a GPU finds the first of many NaNs", "[cuda]") {
  const auto gpu = gpu_or_none();
  if (!gpu) return;
  Floats values(1 << 21, NAN);  // several per thread of the grid
  std::fill_n(values.begin(), 5, 1.0f);
  const Array<float> x(*gpu, values);
  CHECK(gpu->find_non_finite(x.data(), std::ssize(values)) == 5);
}

TEST_CASE("a GPU encodes arrays of more tiles than the grid has warps", "[cuda]") {
  const auto gpu = gpu_or_none();
  if (!gpu) return;
  constexpr std::int64_t kCount = (std::int64_t{9} << 20) + 5;
  Rng rng(4);
  const Floats values = random_floats(rng, kCount);
  const kernels::Encoding encoding{kernels::Encoding::Kind::bf16};
  const Array<float> from(*gpu, values);
  auto bytes = Array<std::byte>::poisoned(*gpu, static_cast<std::int64_t>(encoding.bytes(kCount)));
  gpu->encode({.count = kCount, .bytes = bytes.data(), .values = from.data()}, encoding);
  std::vector<std::byte> expected(encoding.bytes(kCount));
  kernels::encode({.count = kCount, .bytes = expected.data(), .values = values.data()}, encoding);
  CHECK(bytes.read() == expected);
}

TEST_CASE("losses on a GPU match the CPU", "[cuda]") {
  compare(15, 1e-5, losses);
}

TEST_CASE("updates on a GPU match the CPU, in place and out of place", "[cuda]") {
  compare(30, 1e-6, updates);
}

TEST_CASE("corrections of delayed gradients on a GPU match the CPU", "[cuda]") {
  compare(30, 1e-6, delay_corrections);
}

TEST_CASE("an invalid label makes the loss NaN on a GPU", "[cuda]") {
  const auto gpu = gpu_or_none();
  if (!gpu) return;
  for (const std::int32_t label : {-1, 3}) {
    const Array<float> logits(*gpu, Floats(6, 1.0f));
    const Array<std::int32_t> labels(*gpu, {0, label});
    LossResult loss(*gpu);
    gpu->softmax_cross_entropy(loss.data(), nullptr, logits.data(), labels.data(), 2, 3, 1);
    CHECK(std::isnan(loss.read().loss));
  }
}

TEST_CASE("a GPU's blob can be fetched by the CPU and by another queue", "[cuda]") {
  const auto gpu = gpu_or_none();
  if (!gpu) return;
  const auto other = gpu_or_none();
  Rng rng(3);
  const Floats values = random_floats(rng, 1000);
  Blob blob = gpu->floats(1000);
  gpu->upload(blob.mutable_data(), values.data(), blob.size());
  gpu->end_write(blob);
  const Blob here = make_cpu_executor()->fetch(blob);
  CHECK(here.device().kind != Device::Kind::cuda);
  CHECK(same_bits(Floats(here.as_floats(), here.as_floats() + 1000), values));
  const Blob there = other->fetch(blob);
  CHECK(there.same_as(blob));
  Floats read(1000);
  other->download(read.data(), there.data(), there.size());
  other->end_read(there);
  other->synchronize();
  CHECK(same_bits(read, values));
}

TEST_CASE("two queues of a GPU that declare their reads and writes do not race", "[cuda]") {
  const auto one = gpu_or_none();
  if (!one) return;
  const auto two = gpu_or_none();
  constexpr std::int64_t kFloats = 1 << 14;
  Executor* const queues[] = {one.get(), two.get()};
  Rng rng(5);
  std::vector<Blob> blobs(4);
  Floats expected(4);
  std::vector<Floats> sources;
  for (std::size_t i = 0; i < 4; ++i) {
    expected[i] = static_cast<float>(i + 1);
    sources.push_back(Floats(kFloats, expected[i]));
    blobs[i] = one->floats(kFloats);
    one->upload(blobs[i].mutable_data(), sources[i].data(), blobs[i].size());
    one->end_write(blobs[i]);
  }
  for (int step = 0; step < 300; ++step) {
    Executor& gpu = *queues[rng.below(2)];
    const std::size_t from = rng.below(4), to = (from + 1 + rng.below(3)) % 4;
    Blob next = gpu.floats(kFloats);  // often memory that the other queue still uses
    gpu.begin_read(blobs[from]);
    gpu.begin_read(blobs[to]);
    gpu.copy(next.mutable_data(), blobs[to].data(), next.size());
    gpu.accumulate(next.mutable_floats(), next.as_floats(), -0.5f, kFloats, kernels::Write::add);
    gpu.accumulate(next.mutable_floats(), blobs[from].as_floats(), 0.5f, kFloats,
                   kernels::Write::add);
    gpu.end_read(blobs[from]);
    gpu.end_read(blobs[to]);
    gpu.end_write(next);
    blobs[to] = next;
    expected[to] = 0.5f * expected[to] + 0.5f * expected[from];
  }
  for (std::size_t i = 0; i < 4; ++i) {
    const Blob host = blobs[i].on_host();
    const Floats found(host.as_floats(), host.as_floats() + kFloats);
    CHECK(worst_error(found, Floats(kFloats, expected[i])) < 1e-5);
  }
}
