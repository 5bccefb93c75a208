#include "policies/codec/two_bit.hpp"

#include "kernels/quantise.hpp"

namespace leeway {

void TwoBitCodec::encode(std::span<const float> values, std::uint64_t,
                         std::span<std::byte> bytes) const {
  kernels::quantise_two_bit(reinterpret_cast<std::uint8_t*>(bytes.data()), values.data(),
                            threshold_, values.size());
}

void TwoBitCodec::accumulate(std::span<const std::byte> bytes, float scale,
                             std::span<float> sum) const {
  kernels::accumulate_two_bit(sum.data(), reinterpret_cast<const std::uint8_t*>(bytes.data()),
                              scale * threshold_, sum.size());
}

}  // namespace leeway
