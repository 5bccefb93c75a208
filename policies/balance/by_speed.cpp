#include "policies/balance/by_speed.hpp"

#include <algorithm>
#include <numeric>

#include "core/check.hpp"

namespace leeway {
namespace {

/// Counts and times are clamped to this (eleven days), so that no sum overflows.
constexpr std::int64_t kMostCounted = 1'000'000'000'000'000;
/// Workers are compared by the time that they take for this many samples.
constexpr std::int64_t kSamples = 1024;
constexpr int kWeightBits = 30;

std::int64_t bounded(std::int64_t value) {
  return std::clamp<std::int64_t>(value, 0, kMostCounted);
}

/// Speeds from times for the same work. The fastest worker has weight 2^30.
std::vector<std::int64_t> weights_of(std::vector<std::int64_t> times) {
  std::int64_t least = *std::min_element(times.begin(), times.end());
  for (; least >> (62 - kWeightBits) > 0; least >>= 1)
    for (auto& time : times) time >>= 1;
  for (auto& time : times) time = std::max<std::int64_t>((least << kWeightBits) / time, 1);
  return times;
}

}  // namespace

std::vector<std::uint32_t> apportion(std::int64_t total, std::span<const std::int64_t> weights,
                                     std::int64_t least, std::int64_t most) {
  const auto count = static_cast<std::int64_t>(weights.size());
  LW_CHECK(count * least <= total && total <= count * most, count, total, least, most);
  std::vector<std::int64_t> shares(weights.size(), 0);
  std::vector<std::size_t> in_proportion(weights.size());
  std::iota(in_proportion.begin(), in_proportion.end(), std::size_t{0});
  std::int64_t rest = total, sum = 0;
  const auto proportional = [&](std::size_t i) { return rest * weights[i] / sum; };
  const auto remainder = [&](std::size_t i) { return rest * weights[i] % sum; };
  // Removes the entries of `from` that do not satisfy `fits`, and gives `share` to each.
  const auto take_out = [&](std::vector<std::size_t>& from, std::int64_t share, auto fits) {
    sum = 0;
    for (const auto i : from) sum += weights[i];
    const auto out = std::stable_partition(from.begin(), from.end(), fits);
    const auto taken = from.end() - out;
    for (auto i = out; i != from.end(); ++i) shares[*i] = share;
    from.erase(out, from.end());
    rest -= taken * share;
    return taken > 0;
  };
  // A share capped at `most` leaves more to the others, so the shares at `least` are reconsidered.
  for (auto below_most = in_proportion;; in_proportion = below_most) {
    const std::int64_t rest_before = rest;
    while (
        take_out(in_proportion, least, [&](std::size_t i) { return proportional(i) >= least; })) {
    }
    std::vector<std::size_t> above;
    for (const auto i : in_proportion)
      if (proportional(i) >= most) above.push_back(i);
    if (above.empty()) break;
    rest = rest_before;
    for (const auto i : above) {
      shares[i] = most;
      rest -= most;
      std::erase(below_most, i);
    }
  }
  std::int64_t left = rest;
  for (const auto i : in_proportion) left -= shares[i] = proportional(i);
  std::stable_sort(in_proportion.begin(), in_proportion.end(),
                   [&](std::size_t a, std::size_t b) { return remainder(a) > remainder(b); });
  for (std::int64_t i = 0; i < left; ++i) ++shares[in_proportion[static_cast<std::size_t>(i)]];
  return {shares.begin(), shares.end()};
}

void BySpeed::measured(WorkerId worker, const WorkerPace& pace) {
  auto& sum = paces_[worker];
  sum.iterations = bounded(sum.iterations + bounded(pace.iterations));
  sum.samples = bounded(sum.samples + bounded(pace.samples));
  sum.computed_ns = bounded(sum.computed_ns + bounded(pace.computed_ns));
  for (; sum.iterations > kWindow; sum.iterations /= 2) {
    sum.samples /= 2;
    sum.computed_ns /= 2;
  }
}

std::vector<std::uint32_t> BySpeed::sizes_by_speed(std::span<const WorkerId> live) const {
  std::vector<std::uint32_t> sizes(live.size(), batch_);
  std::vector<std::size_t> measured;
  std::vector<std::int64_t> times;
  for (std::size_t i = 0; i < live.size(); ++i) {
    const auto pace = paces_.find(live[i]);
    if (pace == paces_.end() || pace->second.iterations < kFirstIterations ||
        pace->second.samples == 0)
      continue;
    measured.push_back(i);
    times.push_back(
        std::max<std::int64_t>(pace->second.computed_ns * kSamples / pace->second.samples, 1));
  }
  if (measured.empty()) return sizes;
  const auto shares = apportion(std::int64_t{batch_} * static_cast<std::int64_t>(measured.size()),
                                weights_of(std::move(times)), std::min(kLeast, batch_),
                                std::int64_t{batch_} * kMostBatches);
  for (std::size_t i = 0; i < measured.size(); ++i) sizes[measured[i]] = shares[i];
  return sizes;
}

std::vector<std::uint32_t> BySpeed::batches(std::span<const WorkerId> live) {
  auto sizes = sizes_by_speed(live);
  const auto near = [](std::int64_t now, std::int64_t before) {
    const std::int64_t change = now > before ? now - before : before - now;
    return 100 * change <= kTolerance * before + 100;
  };
  const bool same = std::equal(live.begin(), live.end(), live_.begin(), live_.end());
  if (same && std::equal(sizes.begin(), sizes.end(), sizes_.begin(), near)) return sizes_;
  live_.assign(live.begin(), live.end());
  return sizes_ = std::move(sizes);
}

}  // namespace leeway
