#pragma once
// Shape: the extents of a tensor, outermost first. RowSlice: consecutive rows of a parameter.
#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>
#include <string>

#include "core/check.hpp"
#include "core/limits.hpp"

namespace leeway {

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents)
      : Shape(std::span<const std::int64_t>(extents.begin(), extents.size())) {}
  explicit Shape(std::span<const std::int64_t> extents) : rank_(static_cast<int>(extents.size())) {
    LW_CHECK(extents.size() <= limits::kMaxRank, extents.size());
    for (int i = 0; i < rank_; ++i)
      extents_[static_cast<std::size_t>(i)] = extents[static_cast<std::size_t>(i)];
  }

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const {
    LW_CHECK(axis >= 0 && axis < rank_, axis, rank_);
    return extents_[static_cast<std::size_t>(axis)];
  }
  std::span<const std::int64_t> extents() const {
    return {extents_.data(), static_cast<std::size_t>(rank_)};
  }

  /// Number of elements; 1 for a scalar.
  std::int64_t count() const {
    std::int64_t n = 1;
    for (auto extent : extents()) n *= extent;
    return n;
  }
  /// Elements of one row: all but the outermost extent; 1 for a vector or a scalar.
  std::int64_t row_count() const { return rank_ == 0 ? 1 : rows() == 0 ? 0 : count() / rows(); }
  /// The outermost extent; 1 for a scalar.
  std::int64_t rows() const { return rank_ == 0 ? 1 : extents_[0]; }

  bool operator==(const Shape& other) const {
    if (rank_ != other.rank_) return false;
    for (int i = 0; i < rank_; ++i)
      if ((*this)[i] != other[i]) return false;
    return true;
  }

 private:
  int rank_ = 0;
  std::array<std::int64_t, limits::kMaxRank> extents_{};
};

/// "1x28x28"; "scalar" for rank 0.
inline std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  if (shape.rank() == 0) return out << "scalar";
  for (int i = 0; i < shape.rank(); ++i) out << (i ? "x" : "") << shape[i];
  return out;
}

/// Consecutive rows of a parameter or of its gradient: rows [first_row, first_row + rows),
/// contiguous and row-major. A parameter is one slice, or several when placement splits it by rows.
template <class T>
struct RowSlice {
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  T* data = nullptr;
};

}  // namespace leeway
