#pragma once
// TwoBitCodec: +t, 0 or -t for values from t on, between, and up to -t: 16 times fewer bytes. The
// threshold t is a setting, as in MXNet's gradient compression
// (https://mxnet.apache.org/versions/1.9.1/api/faq/gradient_compression). Needs error feedback: it
// is no contraction.
//
// Bytes: four values per byte, the first in the lowest bits: 0 none, 1 plus, 2 minus.
#include "policies/codec/codec.hpp"

namespace leeway {

class TwoBitCodec final : public Codec {
 public:
  explicit TwoBitCodec(const plan::TwoBit& spec) : threshold_(static_cast<float>(spec.threshold)) {}
  std::string_view name() const override { return "two_bit"; }
  std::size_t size(std::size_t count) const override { return (count + 3) / 4; }
  void encode(std::span<const float> values, std::uint64_t seed,
              std::span<std::byte> bytes) const override;
  void accumulate(std::span<const std::byte> bytes, float scale,
                  std::span<float> sum) const override;

 private:
  float threshold_;
};

}  // namespace leeway
