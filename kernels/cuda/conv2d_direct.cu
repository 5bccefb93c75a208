#include "kernels/cuda/families.hpp"
#include "kernels/cuda/reduce.hpp"

namespace leeway::kernels::cuda {

void direct_forward(On on, float* y, const float* x, const float* w, const Conv2dShape& s) {
  const std::int64_t out_height = s.out_height(), out_width = s.out_width();
  const std::int64_t depth = s.channels / s.groups, group_outputs = s.outputs / s.groups;
  for_each(on, s.batch * out_height * out_width * s.outputs, [=] __device__(std::int64_t i) {
    const auto [pixel, o] = divide(i, s.outputs);
    const auto [out_row, ow] = divide(pixel, out_width);
    const auto [image, oh] = divide(out_row, out_height);
    const std::int64_t first = divide(o, group_outputs).quotient * depth;
    const float* weight = w + o * s.kernel * s.kernel * depth;
    float sum = 0;
    for (std::int64_t kh = 0; kh < s.kernel; ++kh)
      for (std::int64_t kw = 0; kw < s.kernel; ++kw, weight += depth) {
        const std::int64_t h = oh * s.stride - s.padding + kh;
        const std::int64_t c = ow * s.stride - s.padding + kw;
        if (h < 0 || h >= s.height || c < 0 || c >= s.width) continue;
        const float* const in = x + ((image * s.height + h) * s.width + c) * s.channels + first;
        for (std::int64_t d = 0; d < depth; ++d) sum += in[d] * weight[d];
      }
    y[i] = sum;
  });
}

void direct_backward_data(On on, float* dx, const float* dy, const float* w, const Conv2dShape& s) {
  const std::int64_t out_height = s.out_height(), out_width = s.out_width();
  const std::int64_t depth = s.channels / s.groups, group_outputs = s.outputs / s.groups;
  const std::int64_t weights = s.kernel * s.kernel * depth;  // of an output
  for_each(on, s.batch * s.height * s.width * s.channels, [=] __device__(std::int64_t i) {
    const auto [pixel, channel] = divide(i, s.channels);
    const auto [image_row, column] = divide(pixel, s.width);
    const auto [image, h] = divide(image_row, s.height);
    const auto [group, d] = divide(channel, depth);
    float sum = 0;
    for (std::int64_t kh = 0; kh < s.kernel && h + s.padding >= kh; ++kh) {
      const auto [oh, rest] = divide(h + s.padding - kh, s.stride);
      if (rest != 0 || oh >= out_height) continue;
      for (std::int64_t kw = 0; kw < s.kernel && column + s.padding >= kw; ++kw) {
        const auto [ow, rest_w] = divide(column + s.padding - kw, s.stride);
        if (rest_w != 0 || ow >= out_width) continue;
        const std::int64_t first = group * group_outputs;
        const float* const from =
            dy + ((image * out_height + oh) * out_width + ow) * s.outputs + first;
        const float* const weight = w + first * weights + (kh * s.kernel + kw) * depth + d;
        for (std::int64_t o = 0; o < group_outputs; ++o) sum += from[o] * weight[o * weights];
      }
    }
    dx[i] = sum;
  });
}

void direct_backward_weight(On on, Slices dweight, const float* dy, const float* x,
                            const Conv2dShape& s) {
  const std::int64_t out_height = s.out_height(), out_width = s.out_width();
  const std::int64_t depth = s.channels / s.groups, group_outputs = s.outputs / s.groups;
  const std::int64_t places = s.kernel * s.kernel;
  for (const auto& slice : dweight) {
    // Each weight is a column, summed over the pixels of y. Neighbouring columns belong to
    // neighbouring outputs, so that dy is read in order.
    const std::int64_t outputs = slice.rows;
    reduce_columns<1>(
        on, s.batch * out_height * out_width, places * depth * outputs,
        [=] __device__(std::int64_t pixel, std::int64_t column) {
          const auto [in_window, row] = divide(column, outputs);
          const auto [place, d] = divide(in_window, depth);
          const auto [kh, kw] = divide(place, s.kernel);
          const auto [out_row, ow] = divide(pixel, out_width);
          const auto [image, oh] = divide(out_row, out_height);
          const std::int64_t h = oh * s.stride - s.padding + kh;
          const std::int64_t c = ow * s.stride - s.padding + kw;
          if (h < 0 || h >= s.height || c < 0 || c >= s.width) return Sums<1>{};
          const std::int64_t o = slice.first_row + row;
          const std::int64_t channel = divide(o, group_outputs).quotient * depth + d;
          const float in = x[((image * s.height + h) * s.width + c) * s.channels + channel];
          return Sums<1>{
              {static_cast<double>(dy[pixel * s.outputs + o]) * static_cast<double>(in)}};
        },
        [=] __device__(std::int64_t column, const Sums<1>& sums) {
          const auto [in_window, row] = divide(column, outputs);
          const auto [place, d] = divide(in_window, depth);
          slice.data[(row * depth + d) * places + place] = static_cast<float>(sums.of[0]);
        });
  }
}

}  // namespace leeway::kernels::cuda
