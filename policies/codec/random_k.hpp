#pragma once
// RandomKCodec: a random share of the elements (Stich et al., NeurIPS 2018, definition 2.1). The
// receiver draws the same places from a seed: at a share of 1%, 100 times fewer bytes.
//
// The values are split into strata of equal size, one for each element that is sent, and one
// element is drawn in each. Bytes: the seed (u64), then the values (f32).
#include "policies/codec/codec.hpp"

namespace leeway {

class RandomKCodec final : public Codec {
 public:
  explicit RandomKCodec(const plan::RandomK& spec) : share_(spec.share) {}
  std::string_view name() const override { return "random_k"; }
  std::size_t size(std::size_t count) const override;
  void encode(std::span<const float> values, std::uint64_t seed,
              std::span<std::byte> bytes) const override;
  void accumulate(std::span<const std::byte> bytes, float scale,
                  std::span<float> sum) const override;

 private:
  std::size_t kept(std::size_t count) const;

  double share_;
};

}  // namespace leeway
