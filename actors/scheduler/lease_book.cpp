#include "actors/scheduler/lease_book.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/check.hpp"
#include "core/mutant.hpp"
#include "policies/consistency/backup.hpp"

namespace leeway {

std::optional<msg::Lease> LeaseBook::grant(WorkerId worker, Iteration next,
                                           const std::vector<WorkerId>& live) {
  for (const auto& grant : grants_[worker])
    if (grant.lease.first_iteration == next) return grant.lease;
  std::optional<msg::Lease> lease;
  if (limits_.by_rounds) {
    auto& shares = shares_[worker];
    // Rounds before `next` were cut for a worker that started later.
    if (shares.empty() && (next < next_round_ || !open_round(next, live))) return std::nullopt;
    // A worker that asks for another iteration than its next is told that there is no data.
    if (shares.front().first_iteration != next) return std::nullopt;
    lease = shares.front();
    shares.pop_front();
  } else {
    lease = grant_chunk(worker, next, live);
    if (!lease) return std::nullopt;
  }
  horizon_ = std::max(horizon_, lease->first_iteration + lease->iterations());
  grants_[worker].push_back({*lease, 0});
  return lease;
}

std::optional<msg::Lease> LeaseBook::grant_chunk(WorkerId worker, Iteration next,
                                                 const std::vector<WorkerId>& live) {
  const auto place = std::find(live.begin(), live.end(), worker) - live.begin();
  const std::int64_t usual = limits_.batch;
  const std::int64_t batch = batches(live).at(static_cast<std::size_t>(place));
  std::int64_t count = std::max(limits_.chunk * batch / usual, batch);
  if (limits_.total_samples > 0) {
    // Smaller leases towards the end, so that nobody is left with a long one (guided
    // self-scheduling, Polychronopoulos and Kuck, IEEE Trans. Computers 1987).
    const auto everybody = 2 * usual * static_cast<std::int64_t>(live.size());
    const std::int64_t rounds_left = fresh_left() / everybody;
    const auto guided = rounds_left * batch + fresh_left() % everybody * batch / everybody;
    count = std::clamp((guided + batch - 1) / batch * batch, batch, count);
  }
  if (limits_.total_iterations > 0) {  // likewise
    const std::uint64_t left = limits_.total_iterations - iterations_granted_;
    const std::uint64_t guided = std::min(left, left / (2 * live.size()) + 1);
    if (guided < static_cast<std::uint64_t>(count))
      count = std::min(count, static_cast<std::int64_t>(guided) * batch);
  }
  Returned taken = take(count, std::nullopt);
  if (taken.samples.count() == 0) return std::nullopt;
  auto lease = lease_of(std::move(taken), next, static_cast<std::uint32_t>(batch),
                        round_samples(live.size(), 0));
  iterations_granted_ += static_cast<std::uint64_t>(lease.iterations());
  return lease;
}

bool LeaseBook::open_round(Iteration round, const std::vector<WorkerId>& live) {
  // Where the limit of iterations ends inside a round, the last workers have an empty part in it:
  // were the round not cut at all, it could never be reached.
  // Those that were late come last, so that a short round does not wait for them.
  std::vector<std::size_t> order(live.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_partition(order.begin(), order.end(),
                        [&](std::size_t i) { return !late_.contains(live[i]); });
  std::uint64_t with_samples = live.size();
  if (limits_.total_iterations > 0)
    with_samples = std::min(with_samples, limits_.total_iterations - iterations_granted_);
  if (with_samples == 0) return false;
  const auto sizes = batches(live);
  Returned part = take(sizes[order.front()], std::nullopt);
  if (part.samples.count() == 0) return false;
  LW_CHECK(round >= next_round_, round, next_round_);
  next_round_ = round + 1;
  if (limits_.spare > 0)
    round_contributors_[round] = backup_contributors(live.size(), limits_.spare);
  const Epoch epoch = part.samples.epoch;
  const auto samples = round_samples(live.size(), *std::max_element(sizes.begin(), sizes.end()));
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::uint32_t batch = sizes[order[i]];
    if (i > 0) part = take(i < with_samples ? batch : 0, epoch);
    if (part.samples.count() > 0) ++iterations_granted_;
    shares_[live[order[i]]].push_back(lease_of(std::move(part), round, batch, samples));
  }
  return true;
}

std::vector<std::uint32_t> LeaseBook::batches(const std::vector<WorkerId>& live) const {
  return balance_ ? balance_->batches(live) : std::vector(live.size(), limits_.batch);
}

std::uint32_t LeaseBook::round_samples(std::size_t live, std::uint32_t largest) const {
  const std::size_t contributors = backup_contributors(live, limits_.spare);
  return std::max(largest, limits_.batch * static_cast<std::uint32_t>(contributors));
}

msg::Lease LeaseBook::lease_of(Returned taken, Iteration first, std::uint32_t batch,
                               std::uint32_t round_samples) {
  const SampleRange& range = taken.samples;
  samples_leased_ += static_cast<std::uint64_t>(range.count());
  msg::Lease lease;
  lease.lease = LeaseId(next_lease_++);
  lease.epoch = range.epoch;
  lease.begin = range.begin;
  lease.end = range.end;
  lease.first_iteration = first;
  lease.batch = batch;
  lease.round_samples = round_samples;
  lease.applied = std::move(taken.applied);
  return lease;
}

std::int64_t LeaseBook::fresh_left() const {
  return limits_.total_samples == 0 ? limits_.data_size : limits_.total_samples - fresh_;
}

LeaseBook::Returned LeaseBook::take(std::int64_t count, std::optional<Epoch> only) {
  if (!returned_.empty() && (!only || returned_.front().samples.epoch == *only)) {
    auto& [left, applied] = returned_.front();
    Returned taken{{left.epoch, left.begin, std::min(left.end, left.begin + count)}, applied};
    left.begin = taken.samples.end;
    if (left.count() == 0) returned_.pop_front();
    return taken;
  }
  const Epoch now = epoch();
  const std::int64_t position = fresh_ % limits_.data_size;
  if (only && now != *only) return {{*only, 0, 0}, {}};
  const std::int64_t taken =
      std::max<std::int64_t>(0, std::min({count, limits_.data_size - position, fresh_left()}));
  fresh_ += taken;
  return {{now, position, position + taken}, {}};
}

std::vector<SampleRange> LeaseBook::confirm(WorkerId worker, Clock clock) {
  std::vector<SampleRange> news;
  auto& grants = grants_[worker];
  while (!grants.empty()) {
    auto& [lease, trained] = grants.front();
    const std::int64_t size = lease.end - lease.begin;
    // A worker may say any clock: no more than the lease counts, and nothing overflows.
    const std::int64_t done = std::clamp<std::int64_t>(
        clock.value() - lease.first_iteration.value(), 0, lease.iterations());
    const std::int64_t now = std::min(done * lease.batch, size);
    if (now > trained) {
      news.push_back({lease.epoch, lease.begin + trained, lease.begin + now});
      samples_trained_ += static_cast<std::uint64_t>(now - trained);
      trained = now;
    }
    if (done < lease.iterations()) break;
    grants.pop_front();
  }
  return news;
}

LeaseBook::TakenBack LeaseBook::take_back(WorkerId worker, const PartialIterations& partial) {
  TakenBack all;
  for (const auto& [lease, trained] : grants_[worker])
    take_back(lease, lease.begin + (planted(Mutant::trained_leased_again) ? 0 : trained), partial,
              all);
  for (const auto& lease : shares_[worker])
    if (lease.begin < lease.end) all.back.push_back(give_back(lease));
  grants_.erase(worker);
  shares_.erase(worker);
  return all;
}

void LeaseBook::take_back(const msg::Lease& lease, std::int64_t begin,
                          const PartialIterations& partial, TakenBack& all) {
  const auto first_of = [&](Iteration iteration) {
    return std::min(lease.begin + (iteration - lease.first_iteration) * lease.batch, lease.end);
  };
  while (begin < lease.end) {
    const Iteration iteration = lease.first_iteration + (begin - lease.begin) / lease.batch;
    if (iteration >= partial.untouched())
      return all.back.push_back(give_back(lease, begin, lease.end, lease.applied));
    auto applied = united(lease.applied, partial.applied(iteration));
    // Iterations that lack the same parts stay together.
    Iteration next = iteration + 1;
    while (next < partial.untouched() && first_of(next) < lease.end &&
           united(lease.applied, partial.applied(next)) == applied)
      ++next;
    const std::int64_t end = first_of(next);
    if (partial.complete(applied)) {
      samples_trained_ += static_cast<std::uint64_t>(end - begin);
      all.trained.push_back({lease.epoch, begin, end});
    } else {
      all.back.push_back(give_back(lease, begin, end, std::move(applied)));
    }
    begin = end;
  }
}

SampleRange LeaseBook::give_back(const msg::Lease& lease, std::int64_t begin, std::int64_t end,
                                 AppliedBuckets applied) {
  const SampleRange range{lease.epoch, begin, end};
  samples_leased_ -= static_cast<std::uint64_t>(range.count());
  iterations_granted_ -=
      static_cast<std::uint64_t>((range.count() + lease.batch - 1) / lease.batch);
  if (planted(Mutant::applied_buckets_forgotten)) applied.clear();
  returned_.push_back({range, std::move(applied)});
  if (planted(Mutant::leased_twice)) returned_.push_back(returned_.back());
  return range;
}

bool LeaseBook::suffice(Iteration round, const std::vector<WorkerId>& contributors,
                        const std::vector<WorkerId>& live) const {
  if (round < first_open_) return false;  // closed already
  const auto whole_round = round_contributors_.find(round);
  if (whole_round == round_contributors_.end()) return false;  // nobody has cut it
  std::size_t parts = 0, here = 0;
  const auto look = [&](WorkerId worker, const msg::Lease& lease) {
    if (lease.first_iteration != round || lease.begin == lease.end) return;
    ++parts;
    here += std::binary_search(contributors.begin(), contributors.end(), worker) ? 1 : 0;
  };
  for (const WorkerId worker : live) {
    if (const auto grants = grants_.find(worker); grants != grants_.end())
      for (const auto& grant : grants->second) look(worker, grant.lease);
    if (const auto shares = shares_.find(worker); shares != shares_.end())
      for (const auto& share : shares->second) look(worker, share);
  }
  return here >= std::min(whole_round->second, parts);
}

std::vector<LeaseBook::DroppedShare> LeaseBook::close(Iteration round,
                                                      const std::vector<WorkerId>& contributors) {
  std::vector<DroppedShare> back;
  first_open_ = round + 1;
  round_contributors_.erase(round_contributors_.begin(), round_contributors_.upper_bound(round));
  const auto drop = [&](WorkerId worker, const msg::Lease& lease) {
    if (lease.first_iteration != round) return false;
    late_.insert(worker);
    if (lease.begin < lease.end && !planted(Mutant::dropped_samples_lost))
      back.push_back({worker, give_back(lease)});
    return true;
  };
  const auto contributes = [&](WorkerId worker) {
    return std::binary_search(contributors.begin(), contributors.end(), worker);
  };
  for (const WorkerId worker : contributors)
    for (const auto& grant : grants_[worker])
      if (grant.lease.first_iteration == round && grant.lease.begin < grant.lease.end)
        late_.erase(worker);
  for (auto& [worker, grants] : grants_)
    if (!contributes(worker))
      grants.erase_if([&, who = worker](const Grant& grant) { return drop(who, grant.lease); });
  for (auto& [worker, shares] : shares_)
    if (!contributes(worker))
      shares.erase_if([&, who = worker](const msg::Lease& lease) { return drop(who, lease); });
  return back;
}

bool LeaseBook::may_come_back(WorkerId worker) const {
  if (limits_.spare == 0) return false;
  const auto open = [&](const msg::Lease& lease) {
    return lease.first_iteration >= first_open_ && lease.begin < lease.end;
  };
  for (const auto& [other, grants] : grants_)
    for (const auto& grant : grants)
      if (other != worker && open(grant.lease)) return true;
  for (const auto& [other, shares] : shares_)
    for (const auto& share : shares)
      if (other != worker && open(share)) return true;
  return false;
}

void LeaseBook::skip_to(WorkerId worker, Iteration iteration) {
  auto& shares = shares_[worker];
  for (; !shares.empty() && shares.front().first_iteration < iteration; shares.pop_front())
    if (const auto& lease = shares.front(); lease.begin < lease.end) give_back(lease);
}

bool LeaseBook::anything_to_lease() const {
  if (at_last_iteration()) return false;
  return !returned_.empty() || fresh_left() > 0;
}

bool LeaseBook::all_trained() const {
  // Most of the time the counts say so at once.
  if (anything_to_lease() || samples_trained_ != samples_leased_) return false;
  const auto empty = [](const auto& entry) { return entry.second.empty(); };
  return std::all_of(grants_.begin(), grants_.end(), empty) &&
         std::all_of(shares_.begin(), shares_.end(), empty);
}

}  // namespace leeway
