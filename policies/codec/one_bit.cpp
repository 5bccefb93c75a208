#include "policies/codec/one_bit.hpp"

#include "kernels/quantise.hpp"

namespace leeway {
namespace {

std::size_t mean_bytes(std::size_t count) {
  return (count + OneBitCodec::kBlock - 1) / OneBitCodec::kBlock * 2 * sizeof(float);
}

}  // namespace

std::size_t OneBitCodec::size(std::size_t count) const {
  return mean_bytes(count) + (count + 7) / 8;
}

void OneBitCodec::encode(std::span<const float> values, std::uint64_t,
                         std::span<std::byte> bytes) const {
  auto* const means = reinterpret_cast<float*>(bytes.data());
  auto* const signs = reinterpret_cast<std::uint8_t*>(bytes.data() + mean_bytes(values.size()));
  for (std::size_t begin = 0; begin < values.size(); begin += kBlock)
    kernels::quantise_one_bit(signs + begin / 8, means + begin / kBlock * 2, values.data() + begin,
                              std::min(kBlock, values.size() - begin));
}

void OneBitCodec::accumulate(std::span<const std::byte> bytes, float scale,
                             std::span<float> sum) const {
  const auto* const means = reinterpret_cast<const float*>(bytes.data());
  const auto* const signs =
      reinterpret_cast<const std::uint8_t*>(bytes.data() + mean_bytes(sum.size()));
  for (std::size_t begin = 0; begin < sum.size(); begin += kBlock) {
    const float* const mean = means + begin / kBlock * 2;
    kernels::accumulate_one_bit(sum.data() + begin, signs + begin / 8, scale * mean[0],
                                scale * mean[1], std::min(kBlock, sum.size() - begin));
  }
}

}  // namespace leeway
