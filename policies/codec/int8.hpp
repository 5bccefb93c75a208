#pragma once
// Int8Codec: integers from -127 to 127 with a scale for each 256 values, rounded to nearest: 3.94
// times fewer bytes. An error is at most 1/254 of the largest value of its block.
//
// Bytes: the scales (f32), then one byte per value.
#include "policies/codec/codec.hpp"

namespace leeway {

class Int8Codec final : public Codec {
 public:
  static constexpr std::size_t kBlock = 256;

  std::string_view name() const override { return "int8"; }
  std::size_t size(std::size_t count) const override;
  void encode(std::span<const float> values, std::uint64_t seed,
              std::span<std::byte> bytes) const override;
  void accumulate(std::span<const std::byte> bytes, float scale,
                  std::span<float> sum) const override;

 private:
  static std::size_t scales_of(std::size_t count) { return (count + kBlock - 1) / kBlock; }
};

}  // namespace leeway
