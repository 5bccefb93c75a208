#include "actors/scheduler/sample_supply.hpp"

#include <algorithm>
#include <utility>

#include "core/mutant.hpp"

namespace leeway {
namespace {

/// 0 without samples, though the worker counts its empty push as an iteration.
std::uint64_t iterations_of(std::int64_t samples, std::uint32_t batch) {
  return static_cast<std::uint64_t>((samples + batch - 1) / batch);
}

}  // namespace

SampleSupply::Portion SampleSupply::take(std::int64_t count, std::optional<Epoch> only) {
  if (!data_.returned.empty() && (!only || data_.returned.front().samples.epoch == *only)) {
    Portion& left = data_.returned.front();
    if (count > 0) count = std::max<std::int64_t>(count, left.batch);
    Portion taken = left;
    taken.samples.end = std::min(left.samples.end, left.samples.begin + count);
    left.samples.begin = taken.samples.end;
    if (left.samples.count() == 0) data_.returned.pop_front();
    return taken;
  }
  const Epoch now = epoch();
  const std::int64_t position = data_.fresh % limits_.data_size;
  // Partial samples of another epoch come first: perhaps no iteration would be left for them.
  const bool partial_first = limits_.total_iterations > 0 && has_partial();
  if (only && (now != *only || partial_first)) return {{*only, 0, 0}, {}};
  const std::int64_t taken =
      std::max<std::int64_t>(0, std::min({count, limits_.data_size - position, fresh_left()}));
  data_.fresh += taken;
  return {{now, position, position + taken}, {}};
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

bool SampleSupply::has_partial() const {
  return std::ranges::any_of(data_.returned, &Portion::is_partial);
}

std::int64_t SampleSupply::fresh_left() const {
  return limits_.total_samples == 0 ? limits_.data_size : limits_.total_samples - data_.fresh;
}

}  // namespace leeway
