#include "policies/codec/top_k.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/text.hpp"

namespace leeway {
namespace {

/// The bits of the absolute value. For positive floats, the order of the bits is the order of the
/// values, and NaN is the largest.
std::uint32_t size_of(float value) {
  return std::bit_cast<std::uint32_t>(value) & 0x7fffffffu;
}

/// The `kept`-th largest size. Counts the sizes by their first bits, and then looks only at those
/// with the same first bits as the result.
std::uint32_t nth_largest(std::span<const float> values, std::size_t kept) {
  constexpr int kShift = 20;
  constexpr std::size_t kBins = std::size_t{1} << (31 - kShift);
  std::array<std::uint32_t, kBins> even{}, odd{};  // two, so that equal neighbours need not wait
  std::size_t i = 0;
  for (; i + 2 <= values.size(); i += 2) {
    ++even[size_of(values[i]) >> kShift];
    ++odd[size_of(values[i + 1]) >> kShift];
  }
  if (i < values.size()) ++even[size_of(values[i]) >> kShift];
  std::size_t bin = kBins - 1, above = 0;
  while (above + even[bin] + odd[bin] < kept) {
    above += even[bin] + odd[bin];
    --bin;
  }
  std::vector<std::uint32_t> sizes;
  sizes.reserve(even[bin] + odd[bin]);
  for (const float value : values)
    if (const std::uint32_t size = size_of(value); size >> kShift == bin) sizes.push_back(size);
  const auto nth = sizes.begin() + static_cast<std::ptrdiff_t>(kept - above - 1);
  std::nth_element(sizes.begin(), nth, sizes.end(), std::greater<>());
  return *nth;
}

/// The places of the `kept` largest absolute values, in ascending order.
std::vector<std::uint16_t> largest(std::span<const float> values, std::size_t kept) {
  const std::uint32_t least = nth_largest(values, kept);
  std::size_t above = 0;
  for (const float value : values) above += size_of(value) > least ? 1 : 0;
  std::size_t equal = kept - above;  // that are kept
  std::vector<std::uint16_t> places;
  places.reserve(kept);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t size = size_of(values[i]);
    if (size < least) continue;
    if (size > least || (equal > 0 && equal-- > 0)) places.push_back(static_cast<std::uint16_t>(i));
  }
  return places;
}

}  // namespace

std::size_t TopKCodec::kept(std::size_t count) const {
  const auto share = static_cast<std::size_t>(std::ceil(share_ * static_cast<double>(count)));
  return std::clamp<std::size_t>(share, 1, count);
}

std::size_t TopKCodec::kept_of_all(std::size_t count) const {
  const std::size_t rest = count % kSection;
  return count / kSection * kept(kSection) + (rest > 0 ? kept(rest) : 0);
}

std::size_t TopKCodec::size(std::size_t count) const {
  return kept_of_all(count) * (sizeof(float) + sizeof(std::uint16_t));
}

void TopKCodec::encode(std::span<const float> values, std::uint64_t,
                       std::span<std::byte> bytes) const {
  std::byte* kept_values = bytes.data();
  std::byte* places = bytes.data() + kept_of_all(values.size()) * sizeof(float);
  for (std::size_t begin = 0; begin < values.size(); begin += kSection) {
    const auto section = values.subspan(begin, std::min(kSection, values.size() - begin));
    const auto found = largest(section, kept(section.size()));
    for (const std::uint16_t place : found) {
      std::memcpy(kept_values, &section[place], sizeof(float));
      kept_values += sizeof(float);
    }
    std::memcpy(places, found.data(), found.size() * sizeof(std::uint16_t));
    places += found.size() * sizeof(std::uint16_t);
  }
}

Status TopKCodec::check_content(std::span<const std::byte> bytes, std::size_t count) const {
  const std::byte* at = bytes.data() + kept_of_all(count) * sizeof(float);
  for (std::size_t begin = 0; begin < count; begin += kSection) {
    const std::size_t section = std::min(kSection, count - begin);
    int last = -1;
    for (std::size_t i = 0; i < kept(section); ++i, at += sizeof(std::uint16_t)) {
      std::uint16_t place = 0;
      std::memcpy(&place, at, sizeof place);
      if (place >= section || place <= last)
        return Error{concat("top_k: place ", place, " in a section of ", section,
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
  for (std::size_t begin = 0; begin < sum.size(); begin += kSection) {
    const auto section = sum.subspan(begin, std::min(kSection, sum.size() - begin));
    for (std::size_t i = 0; i < kept(section.size()); ++i) {
      float value = 0;
      std::uint16_t place = 0;
      std::memcpy(&value, values, sizeof value);
      std::memcpy(&place, places, sizeof place);
      values += sizeof value;
      places += sizeof place;
      section[place] += scale * value;
    }
  }
}

}  // namespace leeway
