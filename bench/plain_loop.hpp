#pragma once
// PlainLoop: a hand-written training step of the MLP 784-512-256-10 over oneDNN's sgemm, as an
// upper bound for any runtime.
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/rng.hpp"
#include "tensor/blob.hpp"

namespace leeway::bench {

inline constexpr std::int64_t kWidths[] = {784, 512, 256, 10};

inline Blob random_blob(std::int64_t count, double scale, std::uint64_t seed) {
  Rng rng(seed);
  Blob blob = Blob::floats(count);
  for (std::int64_t i = 0; i < count; ++i)
    blob.mutable_floats()[i] = static_cast<float>(scale * rng.normal());
  return blob;
}

/// Forward, softmax cross entropy, backward and an in-place momentum update; without the input
/// gradient of the first layer.
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

}  // namespace leeway::bench
