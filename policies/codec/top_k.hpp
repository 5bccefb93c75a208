#pragma once
// TopKCodec: the share of the elements with the largest absolute values (Aji, Heafield, EMNLP 2017;
// Lin et al., ICLR 2018): at a share of 1%, 66 times fewer bytes. Of equal values the first is
// kept.
//
// The values are split into sections of 65,536, so that a place takes two bytes. Each section sends
// the same share, at least one element. Bytes: the kept values of all sections (f32), then their
// places in the section (u16), in ascending order.
#include "policies/codec/codec.hpp"

namespace leeway {

class TopKCodec final : public Codec {
 public:
  static constexpr std::size_t kSection = 65536;

  explicit TopKCodec(const plan::TopK& spec) : share_(spec.share) {}
  std::string_view name() const override { return "top_k"; }
  std::int64_t encoding_traffic() const override { return 60; }  // with the search
  std::size_t size(std::size_t count) const override;
  void encode(std::span<const float> values, std::uint64_t seed,
              std::span<std::byte> bytes) const override;
  void accumulate(std::span<const std::byte> bytes, float scale,
                  std::span<float> sum) const override;

 private:
  Status check_content(std::span<const std::byte> bytes, std::size_t count) const override;
  /// Elements of a section of `count` that are sent.
  std::size_t kept(std::size_t count) const;
  std::size_t kept_of_all(std::size_t count) const;

  double share_;
};

}  // namespace leeway
