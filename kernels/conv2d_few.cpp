#include "kernels/conv2d_few.hpp"

#include <algorithm>
#include <type_traits>

#include "kernels/simd.hpp"
#include "tensor/blob.hpp"

namespace leeway::kernels {

namespace {

constexpr std::int64_t kLanes = 16;
/// Outputs of one tile, in vectors: with that many, loads keep up with arithmetic.
constexpr std::int64_t kMaxVectors = 4;
constexpr std::int64_t kMaxTaps = 128;

using Vector [[gnu::vector_size(kLanes * sizeof(float)), gnu::aligned(4), gnu::may_alias]] = float;

LW_INLINE Vector load(const float* from) {
  return *reinterpret_cast<const Vector*>(from);
}
LW_INLINE void store(float* to, Vector value) {
  *reinterpret_cast<Vector*>(to) = value;
}

std::int64_t taps_of(const Conv2dShape& s) {
  return s.kernel * s.kernel * s.channels;
}
std::int64_t vectors_of(const Conv2dShape& s) {
  return (s.outputs + kLanes - 1) / kLanes;
}

/// Memory of one thread that is kept between calls; on cache lines, without which loads take twice
/// as long.
float* thread_buffer(int which, std::int64_t floats) {
  thread_local Blob buffers[3];
  auto& buffer = buffers[which];
  if (buffer.size() < static_cast<std::size_t>(floats) * sizeof(float))
    buffer = Blob::floats(floats);
  return buffer.mutable_floats();
}

/// One image with its padding written out, so that no window needs to know of borders.
struct PaddedImage {
  explicit PaddedImage(const Conv2dShape& s)
      : shape(s), row_floats((s.width + 2 * s.padding) * s.channels) {
    const std::int64_t floats = (s.height + 2 * s.padding) * row_floats;
    data = thread_buffer(0, floats);
    std::fill_n(data, floats, 0.0f);
    for (std::int64_t kh = 0; kh < s.kernel; ++kh)
      for (std::int64_t kw = 0; kw < s.kernel; ++kw)
        for (std::int64_t c = 0; c < s.channels; ++c)
          tap_offset[(kh * s.kernel + kw) * s.channels + c] = kh * row_floats + kw * s.channels + c;
  }
  void take(const float* image) {
    const std::int64_t inner = shape.width * shape.channels;
    for (std::int64_t h = 0; h < shape.height; ++h)
      std::copy_n(image + h * inner, inner,
                  data + (h + shape.padding) * row_floats + shape.padding * shape.channels);
  }
  /// The corner of the first window of output row `oh`.
  const float* row(std::int64_t oh) const { return data + oh * shape.stride * row_floats; }

  Conv2dShape shape;
  std::int64_t row_floats;
  float* data;
  std::int64_t tap_offset[kMaxTaps] = {};
};

/// A row of y or dy, its pixels `stride` floats apart, that a tile of V vectors reads or writes.
struct Row {
  float* data;
  std::int64_t stride;
};

/// One output row, V vectors of outputs, P pixels at a time: y = shift + sum over taps of x w.
template <int V, int P>
LW_INLINE void forward_tile(const Row& y, const float* x, std::int64_t pixel_step,
                            const std::int64_t* tap_offset, std::int64_t taps, const float* packed,
                            std::int64_t packed_row, const float* shift) {
  Vector sums[P][V];
#pragma GCC unroll 24
  for (int p = 0; p < P; ++p)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sums[p][v] = load(shift + v * kLanes);
  for (std::int64_t t = 0; t < taps; ++t) {
    Vector w[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) w[v] = load(packed + t * packed_row + v * kLanes);
    const float* from = x + tap_offset[t];
#pragma GCC unroll 24
    for (int p = 0; p < P; ++p)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sums[p][v] += from[p * pixel_step] * w[v];
  }
#pragma GCC unroll 24
  for (int p = 0; p < P; ++p)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) store(y.data + p * y.stride + v * kLanes, sums[p][v]);
}

template <int V>
LW_INLINE void forward_row(const Row& y, const float* x, std::int64_t pixels,
                           std::int64_t pixel_step, const std::int64_t* tap_offset,
                           std::int64_t taps, const float* packed, std::int64_t packed_row,
                           const float* shift) {
  constexpr int P = V == 1 ? 14 : V == 2 ? 12 : V == 3 ? 8 : 6;
  const auto tile = [&](std::int64_t p, auto count) LW_INLINE_LAMBDA {
    forward_tile<V, decltype(count)::value>({y.data + p * y.stride, y.stride}, x + p * pixel_step,
                                            pixel_step, tap_offset, taps, packed, packed_row,
                                            shift);
  };
  if (pixels < P) {
    for (std::int64_t p = 0; p < pixels; ++p) tile(p, std::integral_constant<int, 1>{});
    return;
  }
  // The last tile may overlap the one before it: pixels computed twice are written twice alike.
  for (std::int64_t p = 0; p < pixels; p += P)
    tile(std::min(p, pixels - P), std::integral_constant<int, P>{});
}

LW_AVX512 void forward_rows(const Row& y, const float* x, std::int64_t pixels,
                            std::int64_t pixel_step, const std::int64_t* tap_offset,
                            std::int64_t taps, const float* packed, std::int64_t packed_row,
                            const float* shift, std::int64_t vectors) {
  for (std::int64_t v = 0; v < vectors;) {
    const Row tile{y.data + v * kLanes, y.stride};
    const float* w = packed + v * kLanes;
    const float* b = shift + v * kLanes;
    const std::int64_t here = std::min(kMaxVectors, vectors - v);
    const auto run = [&](auto width) LW_INLINE_LAMBDA {
      forward_row<decltype(width)::value>(tile, x, pixels, pixel_step, tap_offset, taps, w,
                                          packed_row, b);
    };
    if (here == 4) run(std::integral_constant<int, 4>{});
    if (here == 3) run(std::integral_constant<int, 3>{});
    if (here == 2) run(std::integral_constant<int, 2>{});
    if (here == 1) run(std::integral_constant<int, 1>{});
    v += here;
  }
}

/// Taps [first, first + T) of dweight += sum over the pixels of a row of x dy.
template <int V, int T>
LW_INLINE void weights_tile(float* sums, std::int64_t sums_row, const std::int64_t* tap_offset,
                            const Row& dy, const float* x, std::int64_t pixels,
                            std::int64_t pixel_step, int fresh) {
  Vector tile[T][V];
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) tile[t][v] = Vector{};
  for (std::int64_t p = 0; p < pixels; ++p) {
    Vector g[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) g[v] = load(dy.data + p * dy.stride + v * kLanes);
    const float* from = x + p * pixel_step;
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) tile[t][v] += from[tap_offset[t]] * g[v];
  }
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t)
    if (t >= T - fresh)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        float* sum = sums + t * sums_row + v * kLanes;
        store(sum, load(sum) + tile[t][v]);
      }
}

/// All taps, T at a time. The last tile reaches back over taps that are done, and adds the rest.
template <int V, int T>
LW_INLINE void weights_taps(float* sums, std::int64_t sums_row, const std::int64_t* tap_offset,
                            std::int64_t taps, const Row& dy, const float* x, std::int64_t pixels,
                            std::int64_t pixel_step) {
  std::int64_t t = 0;
  for (; t + T <= taps; t += T)
    weights_tile<V, T>(sums + t * sums_row, sums_row, tap_offset + t, dy, x, pixels, pixel_step, T);
  if (t == taps) return;
  if (taps >= T) {
    const std::int64_t back = taps - T;
    return weights_tile<V, T>(sums + back * sums_row, sums_row, tap_offset + back, dy, x, pixels,
                              pixel_step, static_cast<int>(taps - t));
  }
  for (; t < taps; ++t)
    weights_tile<V, 1>(sums + t * sums_row, sums_row, tap_offset + t, dy, x, pixels, pixel_step, 1);
}

/// Of tiles of A or B taps, those that do less work over again.
template <int V, int A, int B>
LW_INLINE void weights_row(float* sums, std::int64_t sums_row, const std::int64_t* tap_offset,
                           std::int64_t taps, const Row& dy, const float* x, std::int64_t pixels,
                           std::int64_t pixel_step) {
  const std::int64_t work_a = (taps + A - 1) / A * A, work_b = (taps + B - 1) / B * B;
  if (work_a < work_b)
    weights_taps<V, A>(sums, sums_row, tap_offset, taps, dy, x, pixels, pixel_step);
  else
    weights_taps<V, B>(sums, sums_row, tap_offset, taps, dy, x, pixels, pixel_step);
}

LW_AVX512 void weights_rows(float* sums, std::int64_t sums_row, const std::int64_t* tap_offset,
                            std::int64_t taps, const Row& dy, const float* x, std::int64_t pixels,
                            std::int64_t pixel_step, std::int64_t vectors) {
  for (std::int64_t v = 0; v < vectors;) {
    float* to = sums + v * kLanes;
    const Row tile{dy.data + v * kLanes, dy.stride};
    const std::int64_t here = std::min(kMaxVectors, vectors - v);
    if (here == 4)
      weights_row<4, 5, 6>(to, sums_row, tap_offset, taps, tile, x, pixels, pixel_step);
    if (here == 3)
      weights_row<3, 5, 9>(to, sums_row, tap_offset, taps, tile, x, pixels, pixel_step);
    if (here == 2)
      weights_row<2, 9, 13>(to, sums_row, tap_offset, taps, tile, x, pixels, pixel_step);
    if (here == 1)
      weights_row<1, 9, 13>(to, sums_row, tap_offset, taps, tile, x, pixels, pixel_step);
    v += here;
  }
}

LW_AVX512 void add_rows(float* sums, const Row& dy, std::int64_t pixels, std::int64_t floats) {
  for (std::int64_t p = 0; p < pixels; ++p)
#pragma omp simd
    for (std::int64_t i = 0; i < floats; ++i) sums[i] += dy.data[p * dy.stride + i];
}

bool wide_vectors() {
#if defined(__x86_64__)
  static const bool there = __builtin_cpu_supports("x86-64-v4");
  return there;
#else
  return false;
#endif
}

}  // namespace

bool conv2d_few_fits(const Conv2dShape& shape) {
  return wide_vectors() && shape.groups == 1 && shape.channels <= 4 && taps_of(shape) <= kMaxTaps;
}

std::size_t conv2d_few_packed_bytes(const Conv2dShape& shape) {
  return static_cast<std::size_t>(taps_of(shape) * vectors_of(shape) * kLanes) * sizeof(float);
}

void conv2d_few_pack(float* packed, const float* weight, const Conv2dShape& s) {
  const std::int64_t row = vectors_of(s) * kLanes, window = s.kernel * s.kernel;
  std::fill_n(packed, taps_of(s) * row, 0.0f);
  for (std::int64_t o = 0; o < s.outputs; ++o)
    for (std::int64_t c = 0; c < s.channels; ++c)
      for (std::int64_t k = 0; k < window; ++k)
        packed[(k * s.channels + c) * row + o] = weight[(o * s.channels + c) * window + k];
}

void conv2d_few_forward(float* y, const float* x, const float* packed, const float* bias,
                        const Conv2dShape& s) {
  const std::int64_t vectors = vectors_of(s), row = vectors * kLanes;
  const std::int64_t height = s.out_height(), width = s.out_width();
  float* shift = thread_buffer(1, row);
  std::fill_n(shift, row, 0.0f);
  if (bias) std::copy_n(bias, s.outputs, shift);
  // A vector that is not whole reaches into the next pixels, which are written after it: all is
  // well but for several tiles a pixel, and near the end. There rows are computed beside y.
  const bool whole = s.outputs == row;
  const bool reaches = !whole && vectors > kMaxVectors;
  float* const beside = whole ? nullptr : thread_buffer(2, width * row);
  PaddedImage image(s);
  for (std::int64_t b = 0; b < s.batch; ++b) {
    image.take(x + b * s.height * s.width * s.channels);
    for (std::int64_t oh = 0; oh < height; ++oh) {
      float* const out = y + (b * height + oh) * width * s.outputs;
      const std::int64_t behind = ((s.batch - b) * height - oh - 1) * width * s.outputs;
      const bool aside = reaches || behind < row - s.outputs;
      forward_rows(aside ? Row{beside, row} : Row{out, s.outputs}, image.row(oh), width,
                   s.stride * s.channels, image.tap_offset, taps_of(s), packed, row, shift,
                   vectors);
      for (std::int64_t p = 0; aside && p < width; ++p)
        std::copy_n(beside + p * row, s.outputs, out + p * s.outputs);
    }
  }
}

void conv2d_few_backward_weights(float* dweight, float* dbias, const float* dy, const float* x,
                                 const Conv2dShape& s) {
  const std::int64_t vectors = vectors_of(s), row = vectors * kLanes, taps = taps_of(s);
  const std::int64_t height = s.out_height(), width = s.out_width();
  // The sums of weights, and of the bias behind them.
  float* const sums = thread_buffer(1, (taps + 1) * row);
  std::fill_n(sums, (taps + 1) * row, 0.0f);
  // A vector that is not whole reads numbers of the next pixels too, into sums that nobody wants;
  // near the end there are none.
  const bool whole = s.outputs == row;
  float* const beside = whole ? nullptr : thread_buffer(2, width * row);
  PaddedImage image(s);
  for (std::int64_t b = 0; b < s.batch; ++b) {
    image.take(x + b * s.height * s.width * s.channels);
    for (std::int64_t oh = 0; oh < height; ++oh) {
      const float* const from = dy + (b * height + oh) * width * s.outputs;
      const std::int64_t behind = ((s.batch - b) * height - oh - 1) * width * s.outputs;
      const bool aside = behind < row - s.outputs;
      for (std::int64_t p = 0; aside && p < width; ++p) {
        std::fill_n(beside + p * row, row, 0.0f);
        std::copy_n(from + p * s.outputs, s.outputs, beside + p * row);
      }
      const Row gradients = aside ? Row{beside, row} : Row{const_cast<float*>(from), s.outputs};
      weights_rows(sums, row, image.tap_offset, taps, gradients, image.row(oh), width,
                   s.stride * s.channels, vectors);
      if (dbias) add_rows(sums + taps * row, gradients, width, s.outputs);
    }
  }
  const std::int64_t window = s.kernel * s.kernel;
  for (std::int64_t o = 0; o < s.outputs; ++o)
    for (std::int64_t c = 0; c < s.channels; ++c)
      for (std::int64_t k = 0; k < window; ++k)
        dweight[(o * s.channels + c) * window + k] = sums[(k * s.channels + c) * row + o];
  if (dbias) std::copy_n(sums + taps * row, s.outputs, dbias);
}

}  // namespace leeway::kernels
