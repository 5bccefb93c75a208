#pragma once
// OneBitCodec: the signs, and for each 1,024 values the mean of the positive and of the negative
// ones: 30 times fewer bytes (1-bit SGD: Seide et al., Interspeech 2014, section 3.2, with blocks
// instead of columns).
//
// Bytes: two means per block (f32; negative, then positive), then eight signs per byte, the first
// in the lowest bit; 1 is positive or zero.
#include "policies/codec/codec.hpp"

namespace leeway {

class OneBitCodec final : public Codec {
 public:
  static constexpr std::size_t kBlock = 1024;

  std::string_view name() const override { return "one_bit"; }
  std::size_t size(std::size_t count) const override;
  void encode(std::span<const float> values, std::uint64_t seed,
              std::span<std::byte> bytes) const override;
  void accumulate(std::span<const std::byte> bytes, float scale,
                  std::span<float> sum) const override;
};

}  // namespace leeway
