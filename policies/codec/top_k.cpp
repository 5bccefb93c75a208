#include "policies/codec/top_k.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/text.hpp"

namespace leeway {
namespace {

/// The places of the `kept` largest absolute values, in ascending order. NaN is the largest.
std::vector<std::uint16_t> largest(std::span<const float> values, std::size_t kept) {
  // For positive floats, the order of the bits is the order of the values.
  std::vector<std::uint32_t> sizes(values.size());
  std::memcpy(sizes.data(), values.data(), values.size_bytes());
  for (auto& size : sizes) size &= 0x7fffffffu;
  auto sorted = sizes;
  const auto nth = sorted.begin() + static_cast<std::ptrdiff_t>(kept - 1);
  std::nth_element(sorted.begin(), nth, sorted.end(), std::greater<>());
  const std::uint32_t least = *nth;
  const auto above = static_cast<std::size_t>(
      std::count_if(sizes.begin(), sizes.end(), [&](std::uint32_t size) { return size > least; }));
  std::size_t equal = kept - above;  // that are kept
  std::vector<std::uint16_t> places;
  places.reserve(kept);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] > least || (sizes[i] == least && equal > 0 && equal-- > 0))
      places.push_back(static_cast<std::uint16_t>(i));
  return places;
}

}  // namespace

std::size_t TopKCodec::kept(std::size_t count) const {
  const auto share = static_cast<std::size_t>(std::ceil(share_ * static_cast<double>(count)));
  return std::clamp<std::size_t>(share, 1, count);
}

std::size_t TopKCodec::kept_of_all(std::size_t count) const {
  const std::size_t rest = count % kChunk;
  return count / kChunk * kept(kChunk) + (rest > 0 ? kept(rest) : 0);
}

std::size_t TopKCodec::size(std::size_t count) const {
  return kept_of_all(count) * (sizeof(float) + sizeof(std::uint16_t));
}

void TopKCodec::encode(std::span<const float> values, std::uint64_t,
                       std::span<std::byte> bytes) const {
  std::byte* kept_values = bytes.data();
  std::byte* places = bytes.data() + kept_of_all(values.size()) * sizeof(float);
  for (std::size_t begin = 0; begin < values.size(); begin += kChunk) {
    const auto chunk = values.subspan(begin, std::min(kChunk, values.size() - begin));
    const auto found = largest(chunk, kept(chunk.size()));
    for (const std::uint16_t place : found) {
      std::memcpy(kept_values, &chunk[place], sizeof(float));
      kept_values += sizeof(float);
    }
    std::memcpy(places, found.data(), found.size() * sizeof(std::uint16_t));
    places += found.size() * sizeof(std::uint16_t);
  }
}

Status TopKCodec::check_content(std::span<const std::byte> bytes, std::size_t count) const {
  const std::byte* at = bytes.data() + kept_of_all(count) * sizeof(float);
  for (std::size_t begin = 0; begin < count; begin += kChunk) {
    const std::size_t chunk = std::min(kChunk, count - begin);
    int last = -1;
    for (std::size_t i = 0; i < kept(chunk); ++i, at += sizeof(std::uint16_t)) {
      std::uint16_t place = 0;
      std::memcpy(&place, at, sizeof place);
      if (place >= chunk || place <= last)
        return Error{concat("top_k: place ", place, " in a chunk of ", chunk,
                            " values comes after place ", last, "; places must ascend")};
      last = place;
    }
  }
  return {};
}

void TopKCodec::accumulate(std::span<const std::byte> bytes, float scale,
                           std::span<float> sum) const {
  const std::byte* values = bytes.data();
  const std::byte* places = bytes.data() + kept_of_all(sum.size()) * sizeof(float);
  for (std::size_t begin = 0; begin < sum.size(); begin += kChunk) {
    const auto chunk = sum.subspan(begin, std::min(kChunk, sum.size() - begin));
    for (std::size_t i = 0; i < kept(chunk.size()); ++i) {
      float value = 0;
      std::uint16_t place = 0;
      std::memcpy(&value, values, sizeof value);
      std::memcpy(&place, places, sizeof place);
      values += sizeof value;
      places += sizeof place;
      chunk[place] += scale * value;
    }
  }
}

}  // namespace leeway
