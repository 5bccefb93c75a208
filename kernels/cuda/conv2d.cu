// Convolution as a matrix product: im2col writes each window as a row, in the order of the packed
// weights (row, column, channel), and each group multiplies these rows by its weights. A few images
// are handled at a time. A 1 x 1 kernel with stride 1 needs no im2col.
#include <algorithm>

#include "kernels/convert_formulas.hpp"
#include "kernels/cuda/families.hpp"
#include "kernels/cuda/four.hpp"
#include "kernels/cuda/parallel.hpp"
#include "kernels/scratch.hpp"
#include "kernels/shape_checks.hpp"
#include "kernels/slices.hpp"

namespace leeway::kernels::cuda {

namespace {

/// (O, K, K, C / G): of float, or with the number of a precision added, of its half_type.
constexpr std::uint64_t kFormId = 0x6375646100;
constexpr std::int64_t kColumnBytes = std::int64_t{64} << 20;
/// Up to this number of inputs times outputs, a group is too small for a matrix product.
constexpr std::int64_t kSmallGroup = 64;

/// True if the rows of x (B, H, W, C) are the windows.
bool windows_are_pixels(const Conv2dShape& s) {
  return s.kernel == 1 && s.stride == 1 && s.padding == 0;
}
bool has_small_groups(const Conv2dShape& s) {
  return s.groups > 1 && (s.channels / s.groups) * (s.outputs / s.groups) <= kSmallGroup;
}
std::int64_t group_inputs(const Conv2dShape& s) {
  return s.channels / s.groups;
}
std::int64_t group_outputs(const Conv2dShape& s) {
  return s.outputs / s.groups;
}
std::int64_t out_pixels(const Conv2dShape& s) {
  return s.out_height() * s.out_width();
}
/// Floats of one window of a group; also of the weights of one output.
std::int64_t window_floats(const Conv2dShape& s) {
  return s.kernel * s.kernel * group_inputs(s);
}
/// Whether products read x, dy and the weights as numbers of 16 bits.
bool rounds(const Conv2dShape& s) {
  return is_half(s.precision) && !has_small_groups(s);
}
/// Bytes of `count` numbers that a product reads.
std::size_t operand_bytes(const Conv2dShape& s, std::int64_t count) {
  return static_cast<std::size_t>(count) * (rounds(s) ? sizeof(std::uint16_t) : sizeof(float));
}
/// Images handled at a time.
std::int64_t images_at_once(const Conv2dShape& s) {
  const std::int64_t batch = std::max<std::int64_t>(1, s.batch);
  if (windows_are_pixels(s)) return batch;
  const auto image_bytes = out_pixels(s) * window_floats(s) * std::int64_t{sizeof(float)};
  return std::clamp<std::int64_t>(kColumnBytes / image_bytes, 1, batch);
}
/// Bytes of the packed weight gradient at the start of scratch.
std::size_t dweight_bytes(const Conv2dShape& s) {
  return padded_bytes(static_cast<std::size_t>(s.weight_count()) * sizeof(float));
}
/// Bytes of the rounded dy, which follows it.
std::size_t dy_bytes(const Conv2dShape& s) {
  return rounds(s) ? padded_bytes(operand_bytes(s, s.batch * out_pixels(s) * s.outputs)) : 0;
}
/// Bytes of the windows, or of their gradients, which follow dy.
std::size_t column_bytes(const Conv2dShape& s) {
  if (windows_are_pixels(s))
    return rounds(s) ? operand_bytes(s, s.batch * out_pixels(s) * s.channels) : 0;
  return static_cast<std::size_t>(images_at_once(s) * out_pixels(s) * window_floats(s)) *
         sizeof(float);
}

__device__ void add(float& sum, float more) {
  sum += more;
}
__device__ void add(float4& sum, float4 more) {
  sum.x += more.x;
  sum.y += more.y;
  sum.z += more.z;
  sum.w += more.w;
}

__device__ void store(float& to, float from) {
  to = from;
}
__device__ void store(float4& to, float4 from) {
  to = from;
}
template <class Half>
__device__ void store(Half& to, float from) {
  from_float(to, from);
}
template <class Half>
__device__ void store(Four<Half>& to, float4 from) {
  round_four(to, from);
}

/// Extents in units of T: a float, or four of a pixel's channels.
struct Extents {
  std::int64_t height, width, channels, out_height, out_width;
  std::int64_t kernel, stride, padding;
  std::int64_t depth;  // channels of the group
  std::int64_t first;  // its first channel
};

template <class T>
Extents extents_of(const Conv2dShape& s, std::int64_t group) {
  constexpr std::int64_t kUnit = sizeof(T) / sizeof(float);
  const std::int64_t depth = group_inputs(s) / kUnit;
  return {s.height, s.width,  s.channels / kUnit, s.out_height(), s.out_width(),
          s.kernel, s.stride, s.padding,          depth,          group * depth};
}

/// col (images * OH * OW, K, K, depth) = windows of x (images, H, W, C), padded with 0.
template <class To, class T>
void im2col(On on, To* col, const T* x, std::int64_t images, const Extents& e) {
  const std::int64_t window = e.kernel * e.kernel * e.depth;
  for_each(on, images * e.out_height * e.out_width * window, [=] __device__(std::int64_t i) {
    const auto [row, in_window] = divide(i, window);
    const auto [place, channel] = divide(in_window, e.depth);
    const auto [kh, kw] = divide(place, e.kernel);
    const auto [out_row, ow] = divide(row, e.out_width);
    const auto [image, oh] = divide(out_row, e.out_height);
    const std::int64_t h = oh * e.stride - e.padding + kh;
    const std::int64_t w = ow * e.stride - e.padding + kw;
    T value{};
    if (h >= 0 && h < e.height && w >= 0 && w < e.width)
      value = x[((image * e.height + h) * e.width + w) * e.channels + e.first + channel];
    store(col[i], value);
  });
}

/// dx (images, H, W, C), in the group's channels = sum of each pixel's gradients over its windows.
/// dcol has the layout of col.
template <class T>
void col2im(On on, T* dx, const T* dcol, std::int64_t images, const Extents& e) {
  const std::int64_t window = e.kernel * e.kernel * e.depth;
  for_each(on, images * e.height * e.width * e.depth, [=] __device__(std::int64_t i) {
    const auto [pixel, channel] = divide(i, e.depth);
    const auto [image_row, w] = divide(pixel, e.width);
    const auto [image, h] = divide(image_row, e.height);
    T sum{};
    for (std::int64_t kh = 0; kh < e.kernel && h + e.padding >= kh; ++kh) {
      const auto [oh, rest] = divide(h + e.padding - kh, e.stride);
      if (rest != 0 || oh >= e.out_height) continue;
      for (std::int64_t kw = 0; kw < e.kernel && w + e.padding >= kw; ++kw) {
        const auto [ow, rest_w] = divide(w + e.padding - kw, e.stride);
        if (rest_w != 0 || ow >= e.out_width) continue;
        const std::int64_t row = (image * e.out_height + oh) * e.out_width + ow;
        add(sum, dcol[row * window + (kh * e.kernel + kw) * e.depth + channel]);
      }
    }
    dx[pixel * e.channels + e.first + channel] = sum;
  });
}

/// im2col with elements `One`, or four at a time as `Four`.
template <class Four, class One>
void fill_columns(On on, std::byte* col, const float* x, std::int64_t images, std::int64_t group,
                  const Conv2dShape& s) {
  if (group_inputs(s) % 4 == 0 && aligned16(col, x))
    im2col(on, reinterpret_cast<Four*>(col), reinterpret_cast<const float4*>(x), images,
           extents_of<float4>(s, group));
  else
    im2col(on, reinterpret_cast<One*>(col), x, images, extents_of<float>(s, group));
}

/// The windows of `images` images of x in one group, as a product reads them: in `col`, or x itself
/// if its rows are the windows.
struct Windows {
  const void* data;
  std::int64_t leading;
};
Windows windows_of(On on, std::byte* col, const float* x, std::int64_t images, std::int64_t group,
                   const Conv2dShape& s) {
  if (windows_are_pixels(s)) {
    if (!rounds(s)) return {x + group * group_inputs(s), s.channels};
    if (group == 0)
      convert(on, col, half_type(s.precision), x, DType::f32, images * out_pixels(s) * s.channels);
    return {col + operand_bytes(s, group * group_inputs(s)), s.channels};
  }
  if (!rounds(s))
    fill_columns<float4, float>(on, col, x, images, group, s);
  else if (s.precision == Precision::fp16)
    fill_columns<Four<F16>, F16>(on, col, x, images, group, s);
  else
    fill_columns<Four<Bf16>, Bf16>(on, col, x, images, group, s);
  return {col, window_floats(s)};
}

void scatter_windows(On on, float* dx, const float* dcol, std::int64_t images, std::int64_t group,
                     const Conv2dShape& s) {
  if (group_inputs(s) % 4 == 0 && aligned16(dcol, dx))
    col2im(on, reinterpret_cast<float4*>(dx), reinterpret_cast<const float4*>(dcol), images,
           extents_of<float4>(s, group));
  else
    col2im(on, dx, dcol, images, extents_of<float>(s, group));
}

/// dweight (Og, window) = or += dy^T windows; dy begins at the group's first output.
void backward_weight(On on, float* dweight, const void* dy, const Windows& windows,
                     std::int64_t images, bool add, const Conv2dShape& s) {
  gemm(on,
       {.m = group_outputs(s),
        .n = window_floats(s),
        .k = images * out_pixels(s),
        .lda = s.outputs,
        .ldb = windows.leading,
        .ldc = window_floats(s),
        .transpose_a = true,
        .add = add,
        .precision = s.precision},
       dweight, dy, windows.data);
}

/// dx of these images = col2im of dy times the group's weights.
void backward_data(On on, float* dx, float* col, const void* dy, const void* w, std::int64_t images,
                   std::int64_t group, const Conv2dShape& s) {
  const bool plain = windows_are_pixels(s);
  gemm(on,
       {.m = images * out_pixels(s),
        .n = window_floats(s),
        .k = group_outputs(s),
        .lda = s.outputs,
        .ldb = window_floats(s),
        .ldc = plain ? s.channels : window_floats(s),
        .precision = s.precision},
       plain ? dx + group * group_inputs(s) : col, dy, w);
  if (!plain) scatter_windows(on, dx, col, images, group, s);
}

/// dweight (O, C / G, K, K) = packed (O, K, K, C / G).
void unpack(On on, Slices dweight, const float* packed, const Conv2dShape& s) {
  const std::int64_t window = window_floats(s), places = s.kernel * s.kernel;
  const std::int64_t depth = group_inputs(s);
  for (const auto& slice : dweight)
    for_each(on, slice.rows * window, [=] __device__(std::int64_t i) {
      const auto [row, in_row] = divide(i, window);
      const auto [channel, place] = divide(in_row, places);
      slice.data[i] = packed[(slice.first_row + row) * window + place * depth + channel];
    });
}

/// packed (O, K, K, C / G) = weight (O, C / G, K, K).
template <class T>
void pack(On on, T* packed, ConstSlices weight, const Conv2dShape& s) {
  const std::int64_t window = window_floats(s), places = s.kernel * s.kernel;
  const std::int64_t depth = group_inputs(s);
  for (const auto& slice : weight)
    for_each(on, slice.rows * window, [=] __device__(std::int64_t i) {
      const auto [row, in_window] = divide(i, window);
      const auto [place, channel] = divide(in_window, depth);
      store(packed[slice.first_row * window + i],
            slice.data[row * window + channel * places + place]);
    });
}

}  // namespace

PackForm conv2d_form(const Conv2dShape& shape) {
  check(shape);
  const auto rounding = rounds(shape) ? static_cast<std::uint64_t>(shape.precision) : 0;
  return {kFormId + rounding, operand_bytes(shape, shape.weight_count())};
}

void conv2d_pack(On on, std::byte* packed, ConstSlices weight, const Conv2dShape& s) {
  check(s);
  check_rows(weight, s.outputs);
  if (!rounds(s))
    pack(on, reinterpret_cast<float*>(packed), weight, s);
  else if (s.precision == Precision::fp16)
    pack(on, reinterpret_cast<F16*>(packed), weight, s);
  else
    pack(on, reinterpret_cast<Bf16*>(packed), weight, s);
}

std::size_t conv2d_scratch_bytes(const Conv2dShape& s) {
  check(s);
  if (has_small_groups(s)) return 0;
  return dweight_bytes(s) + dy_bytes(s) + column_bytes(s);
}

void conv2d_forward(On on, float* y, const float* x, const std::byte* packed, const float* bias,
                    std::byte* scratch, const Conv2dShape& s) {
  check(s);
  if (s.batch == 0) return;
  if (has_small_groups(s)) {
    direct_forward(on, y, x, reinterpret_cast<const float*>(packed), s);
  } else {
    const std::int64_t at_once = images_at_once(s);
    for (std::int64_t image = 0; image < s.batch; image += at_once) {
      const std::int64_t images = std::min(at_once, s.batch - image);
      const float* const x_here = x + image * s.height * s.width * s.channels;
      for (std::int64_t group = 0; group < s.groups; ++group) {
        const std::int64_t first = group * group_outputs(s);
        const Windows windows = windows_of(on, scratch, x_here, images, group, s);
        gemm(on,
             {.m = images * out_pixels(s),
              .n = group_outputs(s),
              .k = window_floats(s),
              .lda = windows.leading,
              .ldb = window_floats(s),
              .ldc = s.outputs,
              .transpose_b = true,
              .precision = s.precision},
             y + image * out_pixels(s) * s.outputs + first, windows.data,
             packed + operand_bytes(s, first * window_floats(s)));
      }
    }
  }
  if (bias) add_bias(on, y, bias, s.batch * out_pixels(s), s.outputs, s.outputs);
}

void conv2d_backward(On on, float* dx, Slices dweight, float* dbias, const float* dy,
                     const float* x, const std::byte* packed, std::byte* scratch,
                     const Conv2dShape& s) {
  check(s);
  const bool weights = !dweight.empty();
  if (weights) check_rows(dweight, s.outputs);
  if (dbias) column_sums(on, dbias, dy, s.batch * out_pixels(s), s.outputs, s.outputs);
  if (has_small_groups(s) || s.batch == 0) {
    if (weights) direct_backward_weight(on, dweight, dy, x, s);
    if (dx) direct_backward_data(on, dx, dy, reinterpret_cast<const float*>(packed), s);
    return;
  }
  auto* const dw = reinterpret_cast<float*>(scratch);
  std::byte* const rounded_dy = scratch + dweight_bytes(s);
  std::byte* const col = rounded_dy + dy_bytes(s);
  const auto* dy_operand = reinterpret_cast<const std::byte*>(dy);
  if (rounds(s)) {
    convert(on, rounded_dy, half_type(s.precision), dy, DType::f32,
            s.batch * out_pixels(s) * s.outputs);
    dy_operand = rounded_dy;
  }
  const std::int64_t at_once = images_at_once(s), image_floats = s.height * s.width * s.channels;
  for (std::int64_t image = 0; image < s.batch; image += at_once) {
    const std::int64_t images = std::min(at_once, s.batch - image);
    for (std::int64_t group = 0; group < s.groups; ++group) {
      const std::int64_t first = group * group_outputs(s);
      const std::byte* const dy_here =
          dy_operand + operand_bytes(s, image * out_pixels(s) * s.outputs + first);
      if (weights) {
        const Windows windows = windows_of(on, col, x + image * image_floats, images, group, s);
        backward_weight(on, dw + first * window_floats(s), dy_here, windows, images, image > 0, s);
      }
      // dcol overwrites the windows, which are no longer needed.
      if (dx)
        backward_data(on, dx + image * image_floats, reinterpret_cast<float*>(col), dy_here,
                      packed + operand_bytes(s, first * window_floats(s)), images, group, s);
    }
  }
  if (weights) unpack(on, dweight, dw, s);
}

}  // namespace leeway::kernels::cuda
