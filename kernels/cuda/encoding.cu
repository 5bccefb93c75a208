// A warp encodes a tile of values: a lane holds four neighbours of each of the tile's parts of 128
// values, so all reads and writes of a warp are contiguous. The gradient and the residual are read
// once, and the codes and the new residual are written once.
#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

#include "core/check.hpp"
#include "kernels/convert_formulas.hpp"
#include "kernels/cuda/families.hpp"
#include "kernels/cuda/parallel.hpp"
#include "kernels/cuda/reduce.hpp"
#include "kernels/quantise_formulas.hpp"

namespace leeway::kernels::cuda {

namespace {

using Kind = Encoding::Kind;

constexpr int kPart = 4 * kWarp;  // values of a part of a tile

/// Four neighbouring values.
struct Four {
  float of[4];
};

/// values [begin, begin + 4). Those of a whole tile exist and are aligned; of others, those from
/// `count` on are 0.
template <bool kWhole>
__device__ Four load(const float* from, std::int64_t begin, std::int64_t count) {
  if constexpr (kWhole) {
    const float4 four = *reinterpret_cast<const float4*>(from + begin);
    return {{four.x, four.y, four.z, four.w}};
  } else {
    Four four{};
    for (int i = 0; i < 4; ++i)
      if (begin + i < count) four.of[i] = from[begin + i];
    return four;
  }
}

template <bool kWhole>
__device__ void store(float* to, std::int64_t begin, std::int64_t count, const Four& four) {
  if constexpr (kWhole) {
    *reinterpret_cast<float4*>(to + begin) = {four.of[0], four.of[1], four.of[2], four.of[3]};
  } else {
    for (int i = 0; i < 4; ++i)
      if (begin + i < count) to[begin + i] = four.of[i];
  }
}

/// tile = scale * values + residual, rounded after each operation, as on the CPU. Reads all parts
/// before it uses one, so that the reads overlap.
template <bool kWhole, int kParts>
__device__ void sum_up(Four (&tile)[kParts], const EncodingBuffers& at, std::int64_t begin) {
#pragma unroll
  for (int p = 0; p < kParts; ++p) tile[p] = load<kWhole>(at.values, begin + p * kPart, at.count);
  if (!at.residual) {
    for (Four& four : tile)
      for (float& value : four.of) value = __fmul_rn(at.scale, value);
    return;
  }
  Four rest[kParts];
#pragma unroll
  for (int p = 0; p < kParts; ++p) rest[p] = load<kWhole>(at.residual, begin + p * kPart, at.count);
#pragma unroll
  for (int p = 0; p < kParts; ++p)
    for (int i = 0; i < 4; ++i)
      tile[p].of[i] = __fadd_rn(__fmul_rn(at.scale, tile[p].of[i]), rest[p].of[i]);
}

/// Stores the codes of values [begin, begin + kValues), of kBits each, but none from `count` on.
template <int kBits, int kValues, class Word>
__device__ void store_codes(std::byte* codes, std::int64_t begin, std::int64_t count, Word word) {
  static_assert(kBits * kValues == 8 * sizeof(Word));
  std::byte* const to = codes + begin * kBits / 8;
  if (begin + kValues <= count) {
    *reinterpret_cast<Word*>(to) = word;
    return;
  }
  const std::int64_t bytes = ((count - begin) * kBits + 7) / 8;
  for (int i = 0; i < bytes; ++i) to[i] = static_cast<std::byte>(word >> 8 * i);
}

// A form encodes the values of a lane in a tile and replaces them by what their codes lose. `begin`
// is the first of them; the next part begins kPart later. All lanes of a warp take part.

template <class Number>
struct HalfForm {
  static constexpr int kParts = 2;
  std::byte* codes;

  __device__ void operator()(Four (&tile)[kParts], std::int64_t begin, std::int64_t count) const {
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      std::uint64_t word = 0;
      for (int i = 0; i < 4; ++i) {
        float& value = tile[p].of[i];
        Number number;
        from_float(number, std::is_same_v<Number, F16> ? saturated(value, kLargestF16) : value);
        word |= static_cast<std::uint64_t>(number.bits) << 16 * i;
        value -= to_float(number);
      }
      store_codes<16, 4>(codes, begin + p * kPart, count, word);
    }
  }
};

/// int8 and int4.
template <int kBits, int kBlock, class Word>
struct IntegerForm {
  static constexpr int kParts = 2;
  static constexpr int kLevels = (1 << (kBits - 1)) - 1;
  static constexpr int kLanes = kBlock < kPart ? kBlock / 4 : kWarp;  // of a block
  static constexpr int kBlockParts = kBlock < kPart ? 1 : kBlock / kPart;
  static_assert(kParts % kBlockParts == 0);
  float* scales;
  std::byte* codes;

  __device__ void operator()(Four (&tile)[kParts], std::int64_t begin, std::int64_t count) const {
#pragma unroll
    for (int first = 0; first < kParts; first += kBlockParts) {
      std::uint32_t bits = 0;
#pragma unroll
      for (int p = first; p < first + kBlockParts; ++p)
        for (const float value : tile[p].of) bits = std::max(bits, magnitude_bits(value));
      for (int distance = kLanes / 2; distance > 0; distance /= 2)
        bits = std::max(bits, __shfl_xor_sync(0xffffffffu, bits, distance));
      const float scale = scale_of(bits, kLevels);
      const float factor = inverse(scale, std::bit_cast<float>(bits));
      const std::int64_t mine = begin + first * kPart;
      if (mine % kBlock == 0 && mine < count) scales[mine / kBlock] = scale;
#pragma unroll
      for (int p = first; p < first + kBlockParts; ++p)
        store_codes<kBits, 4>(codes, begin + p * kPart, count, codes_of(tile[p], scale, factor));
    }
  }
  __device__ Word codes_of(Four& four, float scale, float factor) const {
    constexpr std::uint32_t kMask = (1u << kBits) - 1;
    std::uint32_t word = 0;
    for (int i = 0; i < 4; ++i) {
      float& value = four.of[i];
      const std::int32_t number = nearest_level(__fmul_rn(value, factor), kLevels);
      word |= (static_cast<std::uint32_t>(number) & kMask) << kBits * i;
      value = std::fma(-scale, static_cast<float>(number), value);
    }
    return static_cast<Word>(word);
  }
};

struct TwoBitForm {
  static constexpr int kParts = 2;
  std::byte* codes;
  float threshold;

  __device__ void operator()(Four (&tile)[kParts], std::int64_t begin, std::int64_t count) const {
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      std::uint32_t word = 0;
      for (int i = 0; i < 4; ++i) {
        float& value = tile[p].of[i];
        const std::uint32_t code = two_bit_code(value, threshold);
        word |= code << 2 * i;
        value += two_bit_value(code, -threshold);
      }
      store_codes<2, 4>(codes, begin + p * kPart, count, static_cast<std::uint8_t>(word));
    }
  }
};

struct OneBitForm {
  static constexpr int kParts = static_cast<int>(Encoding::kOneBitBlock) / kPart;
  static constexpr int kWordLanes = 8;  // whose signs a word has
  float* means;
  std::byte* codes;

  __device__ void operator()(Four (&tile)[kParts], std::int64_t begin, std::int64_t count) const {
    float below = 0, above = 0;
    int negatives = 0;
#pragma unroll
    for (int p = 0; p < kParts; ++p)
      for (const float value : tile[p].of) {
        const bool negative = value < 0;
        below += negative ? value : 0.0f;
        above += negative ? 0.0f : value;
        negatives += negative ? 1 : 0;
      }
    below = warp_sum(below);
    above = warp_sum(above);
    negatives = warp_sum(negatives);
    const int lane = threadIdx.x % kWarp;
    const std::int64_t first = begin - 4 * lane;
    const auto here = static_cast<int>(min(count - first, std::int64_t{Encoding::kOneBitBlock}));
    const int positives = here - negatives;
    const float negative_mean = negatives > 0 ? below / static_cast<float>(negatives) : 0.0f;
    const float positive_mean = positives > 0 ? above / static_cast<float>(positives) : 0.0f;
    if (lane == 0) {
      float* const both = means + first / static_cast<std::int64_t>(Encoding::kOneBitBlock) * 2;
      both[0] = negative_mean;
      both[1] = positive_mean;
    }
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      const std::int64_t mine = begin + p * kPart;
      std::uint32_t word = 0;
      for (int i = 0; i < 4; ++i) {
        float& value = tile[p].of[i];
        const bool negative = value < 0;
        if (!negative && mine + i < count) word |= 1u << (4 * (lane % kWordLanes) + i);
        value -= negative ? negative_mean : positive_mean;
      }
      for (int distance = 1; distance < kWordLanes; distance *= 2)
        word |= __shfl_xor_sync(0xffffffffu, word, distance);
      if (lane % kWordLanes == 0) store_codes<1, 32>(codes, mine, count, word);
    }
  }
};

template <bool kWhole, class Form>
__device__ void encode_tile(const EncodingBuffers& at, const Form& form, std::int64_t begin) {
  Four tile[Form::kParts];
  sum_up<kWhole>(tile, at, begin);
  form(tile, begin, at.count);
  if (!at.rest_out) return;
#pragma unroll
  for (int p = 0; p < Form::kParts; ++p)
    store<kWhole>(at.rest_out, begin + p * kPart, at.count, tile[p]);
}

template <class Form>
__global__ void __launch_bounds__(kThreads)
    encode_kernel(EncodingBuffers at, Form form, bool aligned) {
  constexpr int kTile = Form::kParts * kPart;
  const std::int64_t tiles = (at.count + kTile - 1) / kTile;
  // All lanes of a warp have the same tile.
  for (std::int64_t t = first_index() / kWarp; t < tiles; t += index_step() / kWarp) {
    const std::int64_t begin = t * kTile + 4 * static_cast<int>(threadIdx.x % kWarp);
    if (aligned && (t + 1) * kTile <= at.count)
      encode_tile<true>(at, form, begin);
    else
      encode_tile<false>(at, form, begin);
  }
}

template <class Form>
void run(On on, const EncodingBuffers& at, const Form& form) {
  const unsigned blocks = blocks_for(at.count, std::int64_t{kThreads} * 4 * Form::kParts);
  const bool aligned = aligned16(at.values, at.residual, at.rest_out);  // null is
  launch(on, blocks, kThreads, encode_kernel<Form>, at, form, aligned);
}

}  // namespace

void encode(On on, const EncodingBuffers& at, const Encoding& encoding) {
  LW_CHECK(at.rest_out || (!at.residual && at.scale == 1), at.scale);
  LW_CHECK(aligned16(at.bytes));
  if (at.count == 0) return;
  auto* const scales = reinterpret_cast<float*>(at.bytes);
  std::byte* const codes = at.bytes + encoding.scale_bytes(static_cast<std::size_t>(at.count));
  switch (encoding.kind) {
    case Kind::bf16:
      return run(on, at, HalfForm<Bf16>{codes});
    case Kind::f16:
      return run(on, at, HalfForm<F16>{codes});
    case Kind::int8:
      return run(on, at, IntegerForm<8, Encoding::kInt8Block, std::uint32_t>{scales, codes});
    case Kind::int4:
      return run(on, at, IntegerForm<4, Encoding::kInt4Block, std::uint16_t>{scales, codes});
    case Kind::two_bit:
      return run(on, at, TwoBitForm{codes, encoding.threshold});
    case Kind::one_bit:
      return run(on, at, OneBitForm{scales, codes});
  }
  LW_CHECK(false, static_cast<int>(encoding.kind));
}

}  // namespace leeway::kernels::cuda
