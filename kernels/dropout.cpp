#include "kernels/dropout.hpp"

#include <algorithm>

#include "core/check.hpp"
#include "kernels/philox.hpp"

namespace leeway::kernels {

namespace {

constexpr std::int64_t kBlocks = 64;  // drawn at a time

LW_INLINE void draw(std::uint32_t* words, const DropoutMask& mask, std::uint64_t key,
                    std::int64_t first_block) {
#pragma omp simd
  for (std::int64_t i = 0; i < kBlocks; ++i) {
    const PhiloxWords block = mask.block(key, static_cast<std::uint64_t>(first_block + i));
    words[4 * i] = block.a;
    words[4 * i + 1] = block.b;
    words[4 * i + 2] = block.c;
    words[4 * i + 3] = block.d;
  }
}

LW_INLINE void apply(float* y, const float* x, const std::uint32_t* words, const DropoutMask& mask,
                     std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = mask.apply(x[i], words[i]);
}

LW_SIMD void drop_sample(float* y, const float* x, const DropoutMask& mask, std::uint64_t key,
                         std::int64_t count) {
  std::uint32_t words[4 * kBlocks];
  for (std::int64_t i = 0; i < count; i += 4 * kBlocks) {
    draw(words, mask, key, i / 4);
    apply(y + i, x + i, words, mask, std::min(4 * kBlocks, count - i));
  }
}

}  // namespace

void dropout(float* y, const float* x, const std::uint64_t* keys, const DropoutShape& shape) {
  LW_CHECK(shape.probability >= 0 && shape.probability < 1, shape.probability);
  const DropoutMask mask(shape.probability, shape.salt);
  for (std::int64_t b = 0; b < shape.batch; ++b)
    drop_sample(y + b * shape.count, x + b * shape.count, mask, keys[b], shape.count);
}

}  // namespace leeway::kernels
