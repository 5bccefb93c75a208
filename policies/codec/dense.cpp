#include "policies/codec/dense.hpp"

namespace leeway {

void DenseCodec::encode(std::span<const float> values, std::uint64_t,
                        std::span<std::byte> bytes) const {
  kernels::encode({.count = static_cast<std::int64_t>(values.size()),
                   .bytes = bytes.data(),
                   .values = values.data()},
                  encoding_);
}

void DenseCodec::accumulate(std::span<const std::byte> bytes, float scale,
                            std::span<float> sum) const {
  kernels::accumulate_encoded(sum.data(), bytes.data(), scale, sum.size(), encoding_);
}

}  // namespace leeway
