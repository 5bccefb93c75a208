#include "actors/scheduler/sample_supply.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/mutant.hpp"

namespace leeway {
namespace {

/// 0 without samples, though the worker counts its empty push as an iteration.
std::uint64_t iterations_of(std::int64_t samples, std::uint32_t batch) {
  return static_cast<std::uint64_t>((samples + batch - 1) / batch);
}

}  // namespace

SampleSupply::SampleSupply(Limits limits, State state)
    : limits_(std::move(limits)), data_(std::move(state)) {
  if (limits_.shares.empty()) limits_.shares = {0, limits_.data_size};
  data_.fresh.resize(limits_.shares.size() - 1);
}

bool SampleSupply::may_take(const Portion& portion, std::span<const std::uint32_t> shares) const {
  if (portion.is_partial() || shares.size() == data_.fresh.size()) return true;
  const auto after = std::ranges::upper_bound(limits_.shares, portion.samples.begin);
  const auto share = static_cast<std::uint32_t>(after - limits_.shares.begin() - 1);
  return std::ranges::find(shares, share) != shares.end();
}

SampleSupply::Portion SampleSupply::take(std::int64_t count, std::optional<Epoch> only,
                                         std::span<const std::uint32_t> shares) {
  const auto left = std::ranges::find_if(
      data_.returned, [&](const Portion& portion) { return may_take(portion, shares); });
  if (left != data_.returned.end() && (!only || left->samples.epoch == *only)) {
    if (count > 0) count = std::max<std::int64_t>(count, left->batch);
    Portion taken = *left;
    taken.samples.end = std::min(left->samples.end, left->samples.begin + count);
    left->samples.begin = taken.samples.end;
    if (left->samples.count() == 0) data_.returned.erase(left);
    return taken;
  }
  const auto has_fresh = [&](std::uint32_t share) { return fresh_left(share) > 0; };
  const auto found = std::ranges::find_if(shares, has_fresh);
  const std::uint32_t share = found == shares.end() ? shares.front() : *found;
  const Epoch now(data_.fresh[share] / size_of(share));
  const std::int64_t position = data_.fresh[share] % size_of(share);
  // Partial samples of another epoch come first: perhaps no iteration would be left for them.
  const bool partial_first = limits_.total_iterations > 0 && has_partial();
  if (only && (now != *only || partial_first)) return {{*only, 0, 0}, {}};
  const std::int64_t taken =
      std::max<std::int64_t>(0, std::min({count, size_of(share) - position, fresh_left(share)}));
  data_.fresh[share] += taken;
  const std::int64_t begin = limits_.shares[share] + position;
  return {{now, begin, begin + taken}, {}};
}

msg::Lease SampleSupply::lease(Portion portion, const Terms& terms) {
  const SampleRange& range = portion.samples;
  const std::uint32_t batch = std::max(terms.batch, portion.batch);
  data_.samples_leased += static_cast<std::uint64_t>(range.count());
  data_.iterations_leased += iterations_of(range.count(), batch);
  msg::Lease lease;
  lease.lease = LeaseId(data_.next_lease++);
  lease.epoch = range.epoch;
  lease.begin = range.begin;
  lease.end = range.end;
  lease.first_iteration = terms.first;
  lease.batch = batch;
  lease.round_samples = terms.round_samples;
  lease.applied = std::move(portion.applied);
  return lease;
}

SampleRange SampleSupply::give_back(const msg::Lease& lease, std::int64_t begin, std::int64_t end,
                                    AppliedBuckets applied) {
  const SampleRange range{lease.epoch, begin, end};
  data_.samples_leased -= static_cast<std::uint64_t>(range.count());
  data_.iterations_leased -= iterations_of(range.count(), lease.batch);
  if (planted(Mutant::applied_buckets_forgotten)) applied.clear();
  Portion portion{range, std::move(applied)};
  if (limits_.total_iterations > 0 && portion.is_partial()) portion.batch = lease.batch;
  const auto place = portion.is_partial()
                         ? std::ranges::find_if_not(data_.returned, &Portion::is_partial)
                         : data_.returned.end();
  data_.returned.insert(place, std::move(portion));
  if (planted(Mutant::leased_twice)) data_.returned.push_back(data_.returned.back());
  return range;
}

bool SampleSupply::has_any() const {
  return !at_last_iteration() && (!data_.returned.empty() || fresh_left() > 0);
}

bool SampleSupply::has_any(std::span<const std::uint32_t> shares) const {
  if (at_last_iteration()) return false;
  return std::ranges::any_of(shares, [&](std::uint32_t share) { return fresh_left(share) > 0; }) ||
         std::ranges::any_of(data_.returned,
                             [&](const Portion& portion) { return may_take(portion, shares); });
}

bool SampleSupply::has_partial() const {
  return std::ranges::any_of(data_.returned, &Portion::is_partial);
}

std::int64_t SampleSupply::fresh_left(std::uint32_t share) const {
  const std::int64_t total = limits_.total_samples, size = limits_.data_size;
  if (total == 0) return size_of(share);
  // Of the samples of all epochs, those before a position of the data.
  const auto before = [&](std::int64_t position) {
    return total / size * position + total % size * position / size;
  };
  return before(limits_.shares[share + 1]) - before(limits_.shares[share]) - data_.fresh[share];
}

std::int64_t SampleSupply::fresh_left() const {
  std::int64_t left = 0;
  // A resumed run may have fewer epochs than a share has begun.
  for (std::uint32_t share = 0; share < shares(); ++share)
    left += std::max<std::int64_t>(0, fresh_left(share));
  return left;
}

std::int64_t SampleSupply::fresh() const {
  return std::accumulate(data_.fresh.begin(), data_.fresh.end(), std::int64_t{0});
}

}  // namespace leeway
