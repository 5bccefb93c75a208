#pragma once
// HalfCodec: bf16 or f16, rounded to nearest. Errors are at most 2^-8 or 2^-11 of a value.
#include "policies/codec/codec.hpp"
#include "tensor/dtype.hpp"

namespace leeway {

class HalfCodec final : public Codec {
 public:
  /// `type`: bf16, whose range is that of f32; or f16, which sends larger values as 65,504.
  explicit HalfCodec(DType type) : type_(type) {}
  std::string_view name() const override { return type_ == DType::bf16 ? "bf16" : "fp16"; }
  std::int64_t encoding_traffic() const override { return type_ == DType::bf16 ? 12 : 22; }
  std::size_t size(std::size_t count) const override { return 2 * count; }
  void encode(std::span<const float> values, std::uint64_t seed,
              std::span<std::byte> bytes) const override;
  void accumulate(std::span<const std::byte> bytes, float scale,
                  std::span<float> sum) const override;

 private:
  DType type_;
};

}  // namespace leeway
