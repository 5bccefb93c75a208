#pragma once
// DenseCodec: sends a code for every value (kernels/encoding.hpp has the bytes). It runs on the
// device that has the values: CPU or GPU.
//
// | codec   | bytes of a value | error                                                       |
// |---------|------------------|-------------------------------------------------------------|
// | bf16    | 2                | at most 2^-8 of the value                                   |
// | fp16    | 2                | at most 2^-11 of the value; larger ones are sent as 65,504  |
// | int8    | 1.016            | at most 1/254 of the largest of 256 values                  |
// | int4    | 0.56             | at most 1/14 of the largest of 64 values                    |
// | two_bit | 0.25             | sends the threshold, 0 or -threshold. A setting, as in      |
// |         |                  | MXNet's gradient compression. No contraction: needs error   |
// |         |                  | feedback                                                    |
// | one_bit | 0.13             | sends the mean of the negative or of the other values, of   |
// |         |                  | 1,024 (Seide et al., Interspeech 2014, section 3.2, with    |
// |         |                  | blocks instead of columns)                                  |
#include "kernels/encoding.hpp"
#include "policies/codec/codec.hpp"

namespace leeway {

class DenseCodec final : public Codec {
 public:
  DenseCodec(std::string_view name, kernels::Encoding encoding, std::int64_t traffic = 12)
      : name_(name), encoding_(encoding), traffic_(traffic) {}
  std::string_view name() const override { return name_; }
  std::int64_t encoding_traffic() const override { return traffic_; }
  const kernels::Encoding* encoding() const override { return &encoding_; }
  std::size_t size(std::size_t count) const override { return encoding_.bytes(count); }
  void encode(std::span<const float> values, std::uint64_t seed,
              std::span<std::byte> bytes) const override;
  void accumulate(std::span<const std::byte> bytes, float scale,
                  std::span<float> sum) const override;

 private:
  std::string_view name_;
  kernels::Encoding encoding_;
  std::int64_t traffic_;
};

}  // namespace leeway
