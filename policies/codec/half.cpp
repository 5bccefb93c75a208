#include "policies/codec/half.hpp"

#include <array>

#include "kernels/accumulate.hpp"
#include "kernels/convert.hpp"

namespace leeway {

void HalfCodec::encode(std::span<const float> values, std::uint64_t,
                       std::span<std::byte> bytes) const {
  kernels::convert(bytes.data(), type_, values.data(), DType::f32,
                   static_cast<std::int64_t>(values.size()));
}

void HalfCodec::accumulate(std::span<const std::byte> bytes, float scale,
                           std::span<float> sum) const {
  std::array<float, 1024> part;
  for (std::size_t begin = 0; begin < sum.size(); begin += part.size()) {
    const auto count = std::min(part.size(), sum.size() - begin);
    kernels::convert(part.data(), DType::f32, bytes.data() + 2 * begin, type_,
                     static_cast<std::int64_t>(count));
    kernels::accumulate(sum.data() + begin, part.data(), scale, static_cast<std::int64_t>(count),
                        kernels::Write::add);
  }
}

}  // namespace leeway
