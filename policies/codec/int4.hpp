#pragma once
// Int4Codec: integers from -7 to 7 with a scale for each 64 values, rounded to nearest: 7.1 times
// fewer bytes. An error is at most 1/14 of the largest value of its block.
//
// Bytes: the scales (f32), then two values per byte, the first in the lower bits.
#include "policies/codec/codec.hpp"

namespace leeway {

class Int4Codec final : public Codec {
 public:
  static constexpr std::size_t kBlock = 64;

  std::string_view name() const override { return "int4"; }
  std::size_t size(std::size_t count) const override;
  void encode(std::span<const float> values, std::uint64_t seed,
              std::span<std::byte> bytes) const override;
  void accumulate(std::span<const std::byte> bytes, float scale,
                  std::span<float> sum) const override;

 private:
  static std::size_t scales_of(std::size_t count) { return (count + kBlock - 1) / kBlock; }
};

}  // namespace leeway
