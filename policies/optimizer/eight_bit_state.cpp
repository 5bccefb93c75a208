#include "policies/optimizer/eight_bit_state.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace leeway {
namespace {

constexpr std::size_t kBlock = 2048;
constexpr int kDecades = 7;

std::size_t scales_of(std::size_t count) {
  return (count + kBlock - 1) / kBlock;
}

/// The 256 values in ascending order. Each decade is divided evenly; its values are the midpoints.
std::array<float, 256> make_values(StateRange range) {
  std::vector<float> values = {0, 1};
  for (int decade = 0; decade < kDecades; ++decade) {
    const int count = 1 << (range == StateRange::any ? decade : decade + 1);
    double power = 1;
    for (int i = decade; i < kDecades - 1; ++i) power /= 10;
    for (int i = 0; i < count; ++i) {
      const auto value = static_cast<float>(power * (0.1 + 0.9 * (i + 0.5) / count));
      values.push_back(value);
      if (range == StateRange::any) values.push_back(-value);
    }
  }
  std::ranges::sort(values);
  std::array<float, 256> all;
  std::ranges::copy(values, all.begin());
  return all;
}

/// Finds the nearest value by the sign, the exponent and the first bits of the mantissa, which
/// resolve less than the difference of two values. So a value finds itself.
class Table {
 public:
  explicit Table(StateRange range) : values_(make_values(range)) {
    codes_.resize(2 * kKeys);
    for (std::uint32_t key = 0; key < codes_.size(); ++key) {
      const float middle =
          std::bit_cast<float>(((key % kKeys + kFirst) << kShift) | 1u << (kShift - 1));
      codes_[key] = nearest(key < kKeys ? middle : -middle, range);
    }
    zero_ = nearest(0, StateRange::any);
  }
  float value(std::uint8_t code) const { return values_[code]; }
  /// Requires -1 to 1.
  std::uint8_t code(float value) const {
    if (value == 0) return zero_;
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t key =
        std::clamp((bits & 0x7fffffffu) >> kShift, kFirst, kFirst + kKeys - 1);
    return codes_[key - kFirst + (bits >> 31) * kKeys];
  }

 private:
  static constexpr int kShift = 14;  // bits that do not count
  static constexpr std::uint32_t kFirst = std::bit_cast<std::uint32_t>(0x1p-24f) >> kShift;
  static constexpr std::uint32_t kKeys =
      (std::bit_cast<std::uint32_t>(1.0f) >> kShift) - kFirst + 1;

  std::uint8_t nearest(float value, StateRange range) const {
    // 0 is the first of the values that are not negative.
    const auto begin = values_.begin() + (range == StateRange::not_negative ? 1 : 0);
    const auto above = std::lower_bound(begin, values_.end(), value);
    if (above == values_.end()) return 255;
    const bool is_below = above != begin && value - *(above - 1) < *above - value;
    return static_cast<std::uint8_t>(above - values_.begin() - (is_below ? 1 : 0));
  }

  std::array<float, 256> values_;
  std::vector<std::uint8_t> codes_;
  std::uint8_t zero_ = 0;
};

const Table& table_of(StateRange range) {
  static const Table any(StateRange::any), not_negative(StateRange::not_negative);
  return range == StateRange::any ? any : not_negative;
}

/// The value with the largest magnitude. NaN if a value is not finite.
float scale_of(std::span<const float> values) {
  float scale = 0;
  bool is_finite = true;
  for (const float value : values) {
    if (std::abs(value) > std::abs(scale)) scale = value;
    is_finite &= std::isfinite(value);
  }
  return is_finite ? scale : std::numeric_limits<float>::quiet_NaN();
}

}  // namespace

std::size_t eight_bit_size(std::size_t count) {
  return scales_of(count) * sizeof(float) + count;
}

void pack_state(StateRange range, std::span<const float> values, std::span<std::byte> bytes) {
  const Table& table = table_of(range);
  auto* const scales = reinterpret_cast<float*>(bytes.data());
  auto* codes = reinterpret_cast<std::uint8_t*>(scales + scales_of(values.size()));
  for (std::size_t begin = 0; begin < values.size(); begin += kBlock) {
    const auto block = values.subspan(begin, std::min(kBlock, values.size() - begin));
    const float scale = scale_of(block);
    scales[begin / kBlock] = scale;
    const bool is_usable = scale != 0 && std::isfinite(scale);
    for (const float value : block) *codes++ = table.code(is_usable ? value / scale : 0);
  }
}

void unpack_state(StateRange range, std::span<const std::byte> bytes, std::span<float> values) {
  const Table& table = table_of(range);
  const auto* const scales = reinterpret_cast<const float*>(bytes.data());
  const auto* const codes =
      reinterpret_cast<const std::uint8_t*>(scales + scales_of(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = scales[i / kBlock] * table.value(codes[i]);
}

Blob pack_state(StateRange range, const Blob& values, std::int64_t count) {
  const auto floats = static_cast<std::size_t>(count);
  Blob packed = Blob::allocate(eight_bit_size(floats));
  pack_state(range, {values.as_floats(), floats}, {packed.mutable_data(), packed.size()});
  return packed;
}

Blob unpack_state(StateRange range, const Blob& packed, std::int64_t count) {
  Blob values = Blob::floats(count);
  unpack_state(range, packed.bytes(), {values.mutable_floats(), static_cast<std::size_t>(count)});
  return values;
}

}  // namespace leeway
