#pragma once
// conv2d: two-dimensional convolution (strictly, cross-correlation) of images.
//
// B batch, C channels, H height, W width, O outputs (channels of y), K kernel (KH = KW = K), G
// groups. Images are channels last, (B, H, W, C). Weights arrive in PyTorch's layout,
// (O, C / G, K, K), split by rows, and each version is packed once into the layout that the kernel
// wants.
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/linear.hpp"

namespace leeway::kernels {

struct Conv2dShape {
  std::int64_t batch = 0, channels = 0, height = 0, width = 0;  // B, C, H, W
  std::int64_t outputs = 0, kernel = 1, stride = 1, padding = 0, groups = 1;
  Precision precision = Precision::fp32;  // a GPU computes groups that are small in fp32

  std::int64_t out_height() const { return (height + 2 * padding - kernel) / stride + 1; }
  std::int64_t out_width() const { return (width + 2 * padding - kernel) / stride + 1; }
  std::int64_t weight_count() const { return outputs * (channels / groups) * kernel * kernel; }
  /// Multiplications and additions of forward for the whole batch.
  std::int64_t flops() const { return 2 * batch * out_height() * out_width() * weight_count(); }
  bool operator==(const Conv2dShape&) const = default;
};

/// The two kernels that read packed weights.
enum class ConvPass : std::uint8_t { forward, backward };

/// The form of the weights that conv2d_forward reads, or that conv2d_backward reads for dx.
PackForm conv2d_form(const Conv2dShape& shape, ConvPass pass);

/// packed (form.bytes, 64-byte aligned) = weight (O, C / G, K, K).
void conv2d_pack(std::byte* packed, ConstSlices weight, const Conv2dShape& shape, ConvPass pass);

/// Bytes of 64-byte aligned scratch for forward or backward, whichever needs more.
std::size_t conv2d_scratch_bytes(const Conv2dShape& shape);

/// y (B, OH, OW, O) = x (B, H, W, C) convolved with the weights, plus bias (O) unless it is null.
void conv2d_forward(float* y, const float* x, const std::byte* packed, const float* bias,
                    std::byte* scratch, const Conv2dShape& shape);

/// dx (B, H, W, C) = gradient of the input, unless dx is null (then `packed` may be null too).
/// dweight (O, C / G, K, K) and dbias (O; may be null) = gradients of the parameters. dy: (B, OH,
/// OW, O). With B = 0 the parameters' gradients are zero. If dweight has no slices, dbias is null
/// and only dx is computed; no result depends on which others are requested.
void conv2d_backward(float* dx, Slices dweight, float* dbias, const float* dy, const float* x,
                     const std::byte* packed, std::byte* scratch, const Conv2dShape& shape);

}  // namespace leeway::kernels
