#include "policies/codec/int8.hpp"

#include "kernels/quantise.hpp"

namespace leeway {
std::size_t Int8Codec::size(std::size_t count) const {
  return scales_of(count) * sizeof(float) + count;
}

void Int8Codec::encode(std::span<const float> values, std::uint64_t,
                       std::span<std::byte> bytes) const {
  auto* const scales = reinterpret_cast<float*>(bytes.data());
  auto* const numbers =
      reinterpret_cast<std::int8_t*>(bytes.data() + scales_of(values.size()) * sizeof(float));
  for (std::size_t begin = 0; begin < values.size(); begin += kBlock)
    scales[begin / kBlock] = kernels::quantise_int8(numbers + begin, values.data() + begin,
                                                    std::min(kBlock, values.size() - begin));
}

void Int8Codec::accumulate(std::span<const std::byte> bytes, float scale,
                           std::span<float> sum) const {
  const auto* const scales = reinterpret_cast<const float*>(bytes.data());
  const auto* const numbers =
      reinterpret_cast<const std::int8_t*>(bytes.data() + scales_of(sum.size()) * sizeof(float));
  for (std::size_t begin = 0; begin < sum.size(); begin += kBlock)
    kernels::accumulate_int8(sum.data() + begin, numbers + begin, scale * scales[begin / kBlock],
                             std::min(kBlock, sum.size() - begin));
}

}  // namespace leeway
