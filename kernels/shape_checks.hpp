#pragma once
// check: throws if a shape is invalid. All devices share these checks.
#include "core/check.hpp"
#include "kernels/attention.hpp"
#include "kernels/conv2d.hpp"
#include "kernels/pool2d.hpp"

namespace leeway::kernels {

inline void check(const Conv2dShape& s) {
  LW_CHECK(s.batch >= 0 && s.groups > 0, s.batch, s.groups);
  LW_CHECK(s.channels > 0 && s.channels % s.groups == 0, s.channels, s.groups);
  LW_CHECK(s.outputs > 0 && s.outputs % s.groups == 0, s.outputs, s.groups);
  LW_CHECK(s.kernel > 0 && s.stride > 0 && s.padding >= 0, s.kernel, s.stride, s.padding);
  LW_CHECK(s.height + 2 * s.padding >= s.kernel && s.width + 2 * s.padding >= s.kernel, s.height,
           s.width, s.padding, s.kernel);
}

inline void check(const AttentionShape& s) {
  LW_CHECK(s.batch >= 0 && s.tokens >= 0, s.batch, s.tokens);
  LW_CHECK(s.heads > 0 && s.features > 0 && s.features % s.heads == 0, s.heads, s.features);
  LW_CHECK(s.head_features() <= AttentionShape::kMaxHeadFeatures, s.heads, s.features);
}

inline void check(const Pool2dShape& s) {
  LW_CHECK(s.kernel > 0 && s.stride > 0, s.kernel, s.stride);
  LW_CHECK(s.padding >= 0 && s.padding <= s.kernel / 2, s.padding, s.kernel);
  LW_CHECK(s.height + 2 * s.padding >= s.kernel && s.width + 2 * s.padding >= s.kernel, s.height,
           s.width, s.padding, s.kernel);
}

/// Max pooling stores the place in a window in a byte.
inline void check_max(const Pool2dShape& s) {
  check(s);
  LW_CHECK(s.kernel <= 15, s.kernel);
}

}  // namespace leeway::kernels
