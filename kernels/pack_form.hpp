#pragma once
// PackForm: a layout of packed weights.
#include <cstddef>
#include <cstdint>

namespace leeway::kernels {

/// Kernels with equal forms can share packed weights. The form may depend on the batch size.
struct PackForm {
  std::uint64_t id = 0;
  std::size_t bytes = 0;
  bool operator==(const PackForm&) const = default;
};

}  // namespace leeway::kernels
