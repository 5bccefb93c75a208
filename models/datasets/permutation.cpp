#include "models/datasets/permutation.hpp"

#include <numeric>
#include <span>

#include "core/check.hpp"
#include "models/datasets/streams.hpp"

namespace leeway {

std::vector<std::int64_t> permutation(std::int64_t size, Rng rng) {
  LW_CHECK(size >= 0, size);
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  rng.shuffle(std::span(order));
  return order;
}

std::vector<std::int64_t> epoch_permutation(std::int64_t size, std::uint64_t seed, Epoch epoch) {
  return permutation(
      size, Rng::stream(seed, streams::kEpochOrder, static_cast<std::uint64_t>(epoch.value())));
}

}  // namespace leeway
