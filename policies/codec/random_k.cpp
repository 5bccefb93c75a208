#include "policies/codec/random_k.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/rng.hpp"

namespace leeway {
namespace {

/// Calls visit(number, place) for one place in each of `kept` strata of `count` values.
template <class Visit>
void draw(std::uint64_t seed, std::size_t count, std::size_t kept, Visit visit) {
  Rng rng(seed);
  for (std::size_t number = 0; number < kept; ++number) {
    const std::size_t begin = count * number / kept, end = count * (number + 1) / kept;
    visit(number, begin + static_cast<std::size_t>(rng.below(end - begin)));
  }
}

}  // namespace

std::size_t RandomKCodec::kept(std::size_t count) const {
  const auto share = static_cast<std::size_t>(std::ceil(share_ * static_cast<double>(count)));
  return std::clamp<std::size_t>(share, 1, count);
}

std::size_t RandomKCodec::size(std::size_t count) const {
  return count == 0 ? 0 : sizeof(std::uint64_t) + kept(count) * sizeof(float);
}

void RandomKCodec::encode(std::span<const float> values, std::uint64_t seed,
                          std::span<std::byte> bytes) const {
  if (values.empty()) return;
  std::memcpy(bytes.data(), &seed, sizeof seed);
  draw(seed, values.size(), kept(values.size()), [&](std::size_t number, std::size_t place) {
    std::memcpy(bytes.data() + sizeof seed + number * sizeof(float), &values[place], sizeof(float));
  });
}

void RandomKCodec::accumulate(std::span<const std::byte> bytes, float scale,
                              std::span<float> sum) const {
  if (sum.empty()) return;
  std::uint64_t seed = 0;
  std::memcpy(&seed, bytes.data(), sizeof seed);
  draw(seed, sum.size(), kept(sum.size()), [&](std::size_t number, std::size_t place) {
    float value = 0;
    std::memcpy(&value, bytes.data() + sizeof seed + number * sizeof(float), sizeof value);
    sum[place] += scale * value;
  });
}

}  // namespace leeway
