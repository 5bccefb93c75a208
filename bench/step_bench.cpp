// One training step of the MLP 784-512-256-10 on one thread, batch by batch: Leeway's Pass and
// optimizer against a plain loop over oneDNN's sgemm, which is what any runtime on top can hope
// for. Run with --benchmark_enable_random_interleaving=true to compare.
#include <benchmark/benchmark.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <cmath>

#include "core/limits.hpp"
#include "core/rng.hpp"
#include "kernels/threads.hpp"
#include "models/layout.hpp"
#include "models/model.hpp"
#include "policies/optimizer/optimizer.hpp"
#include "tensor/blob.hpp"

namespace {

using namespace leeway;

constexpr std::int64_t kWidths[] = {784, 512, 256, 10};

Blob random_blob(std::int64_t count, double scale, std::uint64_t seed) {
  Rng rng(seed);
  Blob blob = Blob::floats(count);
  for (std::int64_t i = 0; i < count; ++i)
    blob.mutable_floats()[i] = static_cast<float>(scale * rng.normal());
  return blob;
}

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

/// The same step by hand: sgemm, and simple loops for the rest.
class PlainLoop {
 public:
  explicit PlainLoop(std::int64_t batch) : batch_(batch) {
    for (std::size_t l = 0; l < 3; ++l) {
      const std::int64_t inputs = kWidths[l], outputs = kWidths[l + 1];
      w_[l] = random_blob(inputs * outputs, 0.03, l);
      b_[l] = random_blob(outputs, 0, 1);
      dw_[l] = random_blob(inputs * outputs, 0, 1);
      db_[l] = random_blob(outputs, 0, 1);
      mw_[l] = random_blob(inputs * outputs, 0, 1);
      mb_[l] = random_blob(outputs, 0, 1);
      a_[l + 1] = random_blob(batch * outputs, 0, 1);
      da_[l + 1] = random_blob(batch * outputs, 0, 1);
    }
    a_[0] = random_blob(batch * kWidths[0], 1, 1);
  }

  void step(const std::int32_t* labels, bool with_update) {
    for (std::size_t l = 0; l < 3; ++l) forward(l);
    loss(labels);
    for (std::size_t l = 3; l-- > 0;) backward(l);
    if (!with_update) return;
    for (std::size_t l = 0; l < 3; ++l) {
      update(w_[l].mutable_floats(), mw_[l].mutable_floats(), dw_[l].as_floats(),
             kWidths[l] * kWidths[l + 1]);
      update(b_[l].mutable_floats(), mb_[l].mutable_floats(), db_[l].as_floats(), kWidths[l + 1]);
    }
  }

 private:
  void forward(std::size_t l) {
    const std::int64_t inputs = kWidths[l], outputs = kWidths[l + 1];
    float* y = a_[l + 1].mutable_floats();
    dnnl_sgemm('N', 'T', batch_, outputs, inputs, 1, a_[l].as_floats(), inputs, w_[l].as_floats(),
               inputs, 0, y, outputs);
    const float* b = b_[l].as_floats();
    for (std::int64_t i = 0; i < batch_; ++i)
      for (std::int64_t o = 0; o < outputs; ++o) {
        const float value = y[i * outputs + o] + b[o];
        y[i * outputs + o] = l < 2 ? std::max(value, 0.0f) : value;
      }
  }
  void loss(const std::int32_t* labels) {
    for (std::int64_t i = 0; i < batch_; ++i) {
      const float* row = a_[3].as_floats() + 10 * i;
      float* out = da_[3].mutable_floats() + 10 * i;
      const float top = *std::max_element(row, row + 10);
      float sum = 0;
      for (int c = 0; c < 10; ++c) sum += out[c] = std::exp(row[c] - top);
      for (int c = 0; c < 10; ++c)
        out[c] = (out[c] / sum - (c == labels[i] ? 1.0f : 0.0f)) / static_cast<float>(batch_);
    }
  }
  void backward(std::size_t l) {
    const std::int64_t inputs = kWidths[l], outputs = kWidths[l + 1];
    const float* dy = da_[l + 1].as_floats();
    dnnl_sgemm('T', 'N', outputs, inputs, batch_, 1, dy, outputs, a_[l].as_floats(), inputs, 0,
               dw_[l].mutable_floats(), inputs);
    float* db = db_[l].mutable_floats();
    std::fill_n(db, outputs, 0.0f);
    for (std::int64_t i = 0; i < batch_; ++i)
      for (std::int64_t o = 0; o < outputs; ++o) db[o] += dy[i * outputs + o];
    if (l == 0) return;
    float* dx = da_[l].mutable_floats();
    dnnl_sgemm('N', 'N', batch_, inputs, outputs, 1, dy, outputs, w_[l].as_floats(), inputs, 0, dx,
               inputs);
    const float* x = a_[l].as_floats();
    for (std::int64_t i = 0; i < batch_ * inputs; ++i) dx[i] = x[i] > 0 ? dx[i] : 0;
  }
  static void update(float* __restrict w, float* __restrict m, const float* __restrict g,
                     std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      m[i] = 0.9f * m[i] + g[i];
      w[i] -= 0.01f * m[i];
    }
  }

  std::int64_t batch_;
  Blob w_[3], b_[3], dw_[3], db_[3], mw_[3], mb_[3], a_[4], da_[4];
};

void plain_step(benchmark::State& state) {
  kernels::use_one_compute_thread();
  PlainLoop loop(state.range(0));
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(state.range(0)), 3);
  for (auto _ : state) loop.step(labels.data(), state.range(1) != 0);
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"batch", "update"})->ArgsProduct({{64, 128}, {0, 1}});
}
BENCHMARK(plain_step)->Apply(sizes);
BENCHMARK(leeway_step)->Apply(sizes);

}  // namespace

BENCHMARK_MAIN();
