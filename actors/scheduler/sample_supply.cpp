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
    auto& [left, applied] = data_.returned.front();
    Portion taken{{left.epoch, left.begin, std::min(left.end, left.begin + count)}, applied};
    left.begin = taken.samples.end;
    if (left.count() == 0) data_.returned.pop_front();
    return taken;
  }
  const Epoch now = epoch();
  const std::int64_t position = data_.fresh % limits_.data_size;
  if (only && now != *only) return {{*only, 0, 0}, {}};
  const std::int64_t taken =
      std::max<std::int64_t>(0, std::min({count, limits_.data_size - position, fresh_left()}));
  data_.fresh += taken;
  return {{now, position, position + taken}, {}};
}

msg::Lease SampleSupply::lease(Portion portion, const Terms& terms) {
  const SampleRange& range = portion.samples;
  data_.samples_leased += static_cast<std::uint64_t>(range.count());
  data_.iterations_leased += iterations_of(range.count(), terms.batch);
  msg::Lease lease;
  lease.lease = LeaseId(data_.next_lease++);
  lease.epoch = range.epoch;
  lease.begin = range.begin;
  lease.end = range.end;
  lease.first_iteration = terms.first;
  lease.batch = terms.batch;
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
  data_.returned.push_back({range, std::move(applied)});
  if (planted(Mutant::leased_twice)) data_.returned.push_back(data_.returned.back());
  return range;
}

bool SampleSupply::has_any() const {
  return !at_last_iteration() && (!data_.returned.empty() || fresh_left() > 0);
}

bool SampleSupply::has_partial() const {
  return std::any_of(data_.returned.begin(), data_.returned.end(),
                     [](const Portion& portion) { return !portion.applied.empty(); });
}

std::int64_t SampleSupply::fresh_left() const {
  return limits_.total_samples == 0 ? limits_.data_size : limits_.total_samples - data_.fresh;
}

}  // namespace leeway
