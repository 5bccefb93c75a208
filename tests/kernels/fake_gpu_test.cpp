#include "tests/support/fake_gpu.hpp"

#include <catch2/catch.hpp>
#include <cstring>

#include "tests/kernels/support.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

/// Copies `values` to the executor's device.
Blob uploaded(Executor& executor, const Floats& values) {
  Blob blob = executor.floats(static_cast<std::int64_t>(values.size()));
  executor.upload(blob.mutable_data(), values.data(), values.size() * sizeof(float));
  executor.synchronize();
  executor.end_write(blob);
  return blob;
}
Floats on_host(const Blob& blob) {
  const Blob host = blob.on_host();
  return {host.as_floats(), host.as_floats() + host.size() / sizeof(float)};
}
bool all_nan(const Floats& values) {
  for (const float value : values)
    if (!std::isnan(value)) return false;
  return true;
}

/// The results of a convolution, its gradients and an update.
Floats small_step(Executor& executor) {
  Rng rng(7);
  const kernels::Conv2dShape shape{
      .batch = 3, .channels = 2, .height = 6, .width = 5, .outputs = 4, .kernel = 3, .padding = 1};
  const std::int64_t weights = shape.weight_count(), outputs = 3 * 6 * 5 * 4,
                     inputs = 3 * 6 * 5 * 2;
  const Blob x = uploaded(executor, random_floats(rng, inputs));
  Blob w = uploaded(executor, random_floats(rng, weights));
  const Blob bias = uploaded(executor, random_floats(rng, 4));
  Blob y = executor.floats(outputs), dx = executor.floats(inputs);
  Blob dw = executor.floats(weights), dbias = executor.floats(4);
  Blob scratch = executor.allocate(executor.conv2d_scratch_bytes(shape));
  const auto packed = [&](kernels::ConvPass pass) {
    const RowSlice<const float> slice{0, 4, w.as_floats()};
    Blob form = executor.allocate(executor.conv2d_form(shape, pass).bytes);
    executor.conv2d_pack(form.mutable_data(), {&slice, 1}, shape, pass);
    return form;
  };
  const Blob forward = packed(kernels::ConvPass::forward);
  const Blob backward = packed(kernels::ConvPass::backward);
  executor.conv2d_forward(y.mutable_floats(), x.as_floats(), forward.data(), bias.as_floats(),
                          scratch.mutable_data(), shape);
  executor.relu_forward(y.mutable_floats(), y.as_floats(), outputs);
  const RowSlice<float> slice{0, 4, dw.mutable_floats()};
  executor.conv2d_backward(dx.mutable_floats(), {&slice, 1}, dbias.mutable_floats(), y.as_floats(),
                           x.as_floats(), backward.data(), scratch.mutable_data(), shape);
  executor.update(
      {.count = weights, .w_out = w.mutable_floats(), .w = w.as_floats(), .g = dw.as_floats()},
      kernels::SgdFormula{0.1f, 0.01f});
  CHECK(executor.find_non_finite(w.as_floats(), weights) == -1);
  Floats all;
  for (const Blob* blob : {&y, &dx, &dw, &dbias, &w}) {
    executor.end_write(*blob);
    const Floats part = on_host(*blob);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

/// Two queues exchange blobs of one device; the host computes the expected contents.
struct Exchange {
  static constexpr std::int64_t kFloats = 300;

  explicit Exchange(std::uint64_t seed) : rng(seed) {
    for (std::size_t i = 0; i < 4; ++i) replace(i, *gpus[i % 2]);
  }

  void step() {
    Executor& gpu = *gpus[rng.below(2)];
    const std::size_t from = rng.below(blobs.size());
    const std::size_t to = (from + 1 + rng.below(blobs.size() - 1)) % blobs.size();
    if (rng.one_in(5)) return replace(to, gpu);
    gpu.begin_read(blobs[from]);
    gpu.begin_write(blobs[to]);
    gpu.accumulate(blobs[to].mutable_floats(), blobs[from].as_floats(), 0.5f, kFloats,
                   kernels::Write::add);
    gpu.end_read(blobs[from]);
    gpu.end_write(blobs[to]);
    for (std::size_t i = 0; i < expected[to].size(); ++i)
      expected[to][i] += 0.5f * expected[from][i];
  }

  /// Replaces a blob, often in memory that a queue still uses.
  void replace(std::size_t i, Executor& gpu) {
    blobs[i].reset();
    blobs[i] = gpu.floats(kFloats);
    const float value = static_cast<float>(rng.below(8));
    sources.push_back(Floats(kFloats, value));
    gpu.upload(blobs[i].mutable_data(), sources.back().data(), kFloats * sizeof(float));
    gpu.end_write(blobs[i]);
    expected[i] = sources.back();
  }

  Rng rng;
  std::vector<Floats> sources;  // outlive the queues
  std::vector<std::shared_ptr<FakeGpu>> gpus{make_fake_gpu(0, 1), make_fake_gpu(0, 2)};
  std::vector<Blob> blobs{4};
  std::vector<Floats> expected{4};
};

}  // namespace

TEST_CASE("a fake GPU computes the same bits as the CPU", "[fake_gpu]") {
  const auto gpu = make_fake_gpu(0, 3);
  const Floats expected = small_step(*make_cpu_executor());
  CHECK(worst_error(small_step(*gpu), expected) == 0);
  CHECK(gpu->device() == Device{Device::Kind::cuda, 90});
}

TEST_CASE("two queues that declare their reads and writes do not race", "[fake_gpu]") {
  Exchange exchange(11);
  for (int i = 0; i < 1000; ++i) {
    exchange.step();
    if (exchange.rng.one_in(50))
      REQUIRE(worst_error(on_host(exchange.blobs[0]), exchange.expected[0]) == 0);
  }
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(worst_error(on_host(exchange.blobs[i]), exchange.expected[i]) == 0);
}

TEST_CASE("an undeclared read does not see another queue's write", "[fake_gpu]") {
  const auto writer = make_fake_gpu(0, 1), reader = make_fake_gpu(0, 2);
  const Floats ones(100, 1.0f);
  Blob blob = writer->floats(100);
  writer->synchronize();
  writer->hold();
  writer->upload(blob.mutable_data(), ones.data(), blob.size());
  writer->end_write(blob);

  Floats hasty(100), patient(100);
  reader->download(hasty.data(), blob.data(), blob.size());
  reader->synchronize();
  CHECK(all_nan(hasty));

  reader->begin_read(blob);
  reader->download(patient.data(), blob.data(), blob.size());
  writer->release();
  reader->synchronize();
  CHECK(worst_error(patient, ones) == 0);
}

TEST_CASE("reused memory is not overwritten before its last reader is done", "[fake_gpu]") {
  const auto reader = make_fake_gpu(1, 1), next = make_fake_gpu(1, 2);
  const Floats ones(1000, 1.0f);
  Blob blob = uploaded(*reader, ones);
  const std::byte* const place = blob.data();
  reader->hold();
  Floats read(1000);
  reader->begin_read(blob);
  reader->download(read.data(), blob.data(), blob.size());
  reader->end_read(blob);
  blob.reset();
  const Blob again = next->floats(1000);  // the queue fills it with NaN
  REQUIRE(again.data() == place);
  reader->release();
  next->synchronize();
  reader->synchronize();
  CHECK(worst_error(read, ones) == 0);
}

TEST_CASE("an upload reads its source when the queue runs it", "[fake_gpu]") {
  const auto gpu = make_fake_gpu(0, 1);
  Floats source(10, 1.0f), result(10);
  Blob blob = gpu->floats(10);
  gpu->hold();
  gpu->upload(blob.mutable_data(), source.data(), blob.size());
  gpu->download(result.data(), blob.data(), blob.size());
  source.assign(10, 2.0f);  // before the upload runs
  gpu->release();
  gpu->synchronize();
  CHECK(result == source);
}

TEST_CASE("new memory holds NaN", "[fake_gpu]") {
  const auto gpu = make_fake_gpu(0, 1);
  Blob blob = uploaded(*gpu, Floats(77, 1.0f));
  blob.reset();
  blob = gpu->floats(77);
  gpu->end_write(blob);
  CHECK(all_nan(on_host(blob)));
}

TEST_CASE("synchronize rethrows the exception of a kernel", "[fake_gpu]") {
  const auto gpu = make_fake_gpu(0, 1);
  const RowSlice<const float> gap{1, 1, nullptr};
  gpu->linear_forward(nullptr, nullptr, {&gap, 1}, {&gap, 1}, {1, 1, 2});
  CHECK_THROWS_AS(gpu->synchronize(), CheckFailed);
  gpu->synchronize();
}
