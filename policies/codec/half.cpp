#include "policies/codec/half.hpp"

#include <algorithm>
#include <array>

#include "kernels/accumulate.hpp"
#include "kernels/convert.hpp"
#include "kernels/quantise.hpp"

namespace leeway {

namespace {

constexpr float kLargest = 65504;  // of f16

}  // namespace

void HalfCodec::encode(std::span<const float> values, std::uint64_t,
                       std::span<std::byte> bytes) const {
  if (type_ == DType::bf16)
    return kernels::convert(bytes.data(), type_, values.data(), DType::f32,
                            static_cast<std::int64_t>(values.size()));
  std::array<float, 1024> part;
  for (std::size_t begin = 0; begin < values.size(); begin += part.size()) {
    const auto here = values.subspan(begin, std::min(part.size(), values.size() - begin));
    kernels::saturate(part.data(), here.data(), kLargest, here.size());
    kernels::convert(bytes.data() + 2 * begin, type_, part.data(), DType::f32,
                     static_cast<std::int64_t>(here.size()));
  }
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
