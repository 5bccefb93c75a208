#include "actors/scheduler/lease_book.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/check.hpp"
#include "core/mutant.hpp"
#include "core/rng.hpp"

namespace leeway {
namespace {

constexpr std::uint64_t kParticipation = 0x7061727469ull;  // stream of the draws

}  // namespace

std::optional<msg::Lease> LeaseBook::grant(WorkerId worker, Iteration next,
                                           const std::vector<WorkerId>& live) {
  for (const auto& grant : data_.grants[worker])
    if (grant.lease.first_iteration == next) return grant.lease;
  std::optional<msg::Lease> lease;
  if (limits_.by_rounds) {
    auto& shares = data_.shares[worker];
    // A worker that started later has no share of rounds before `next`.
    if (shares.empty() && (next < data_.next_round || !open_round(next, live))) return std::nullopt;
    // To a worker that asks for another iteration than its next there is nothing to lease.
    if (shares.front().first_iteration != next) return std::nullopt;
    lease = shares.front();
    shares.pop_front();
  } else {
    lease = lease_on_request(worker, next, live);
    if (!lease) return std::nullopt;
  }
  const Iteration end = lease->first_iteration + lease->iterations();
  data_.horizon = std::max(data_.horizon, end);
  data_.horizons[worker] = end;
  data_.grants[worker].push_back({*lease, 0});
  return lease;
}

std::optional<msg::Lease> LeaseBook::lease_on_request(WorkerId worker, Iteration next,
                                                      const std::vector<WorkerId>& live) {
  const auto place = std::find(live.begin(), live.end(), worker) - live.begin();
  const std::uint32_t batch = batches(live).at(static_cast<std::size_t>(place));
  auto portion = supply_.take(lease_size(batch, static_cast<std::int64_t>(live.size())),
                              std::nullopt, data_shares_of(worker, data_shares_without(live)));
  if (portion.samples.count() == 0) return std::nullopt;
  const std::uint32_t largest = std::max(batch, portion.batch);
  return supply_.lease(std::move(portion), {next, batch, round_samples(live.size(), largest)});
}

std::int64_t LeaseBook::lease_size(std::int64_t batch, std::int64_t live) const {
  const std::int64_t usual = limits_.batch;
  std::int64_t count = std::max(limits_.lease_size * batch / usual, batch);
  if (limits_.total_samples > 0 && limits_.data_shares.empty()) {
    // Smaller leases towards the end, so that no worker is left with a long one (guided
    // self-scheduling, Polychronopoulos and Kuck, IEEE Trans. Computers 1987).
    const std::int64_t two_rounds = 2 * usual * live;
    const std::int64_t fresh = supply_.fresh_left();
    const auto guided = fresh / two_rounds * batch + fresh % two_rounds * batch / two_rounds;
    count = std::clamp((guided + batch - 1) / batch * batch, batch, count);
  }
  if (limits_.total_iterations > 0) {  // likewise
    const std::uint64_t left = supply_.iterations_left();
    const std::uint64_t guided = std::min(left, left / (2 * static_cast<std::uint64_t>(live)) + 1);
    if (guided < static_cast<std::uint64_t>(count))
      count = std::min(count, static_cast<std::int64_t>(guided) * batch);
  }
  return count;
}

std::vector<std::uint32_t> LeaseBook::data_shares_of(WorkerId worker,
                                                     std::vector<std::uint32_t> without) const {
  if (limits_.data_shares.empty()) return {0};
  without.insert(without.begin(), worker.value() / limits_.workers_per_share);
  return without;
}

std::vector<std::uint32_t> LeaseBook::data_shares_without(const std::vector<WorkerId>& live) const {
  std::vector<std::uint32_t> shares;
  if (limits_.data_shares.empty() || live.size() == supply_.shares()) return shares;
  auto owner = live.begin();
  for (std::uint32_t share = 0; share < supply_.shares(); ++share) {
    const WorkerId lead(share * limits_.workers_per_share);
    while (owner != live.end() && *owner < lead) ++owner;
    if (owner == live.end() || *owner != lead) shares.push_back(share);
  }
  return shares;
}

std::vector<bool> LeaseBook::drawn(Iteration round, const std::vector<WorkerId>& live,
                                   const std::vector<std::uint32_t>& without) const {
  std::vector<bool> drawn(live.size(), limits_.participation >= 1);
  if (limits_.participation >= 1) return drawn;
  std::vector<std::size_t> able;  // workers for which there are samples
  for (std::size_t i = 0; i < live.size(); ++i)
    if (supply_.has_any(data_shares_of(live[i], without))) able.push_back(i);
  Rng rng = Rng::stream(limits_.seed, kParticipation, static_cast<std::uint64_t>(round.value()));
  rng.shuffle(std::span(able));
  able.resize(std::min(able.size(), participants(live.size())));
  for (const std::size_t i : able) drawn[i] = true;
  return drawn;
}

std::size_t LeaseBook::participants(std::size_t live) const {
  const auto share = std::ceil(limits_.participation * static_cast<double>(live) - 1e-9);
  return std::max<std::size_t>(1, static_cast<std::size_t>(share));
}

bool LeaseBook::open_round(Iteration round, const std::vector<WorkerId>& live) {
  // Stragglers come last, so that a short round does not wait for them.
  std::vector<std::size_t> order(live.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_partition(order.begin(), order.end(),
                        [&](std::size_t i) { return !data_.stragglers.contains(live[i]); });
  // If the limit of iterations ends inside a round, the last workers have an empty share of it:
  // without that round, the limit could not be reached.
  std::uint64_t left = limits_.total_iterations > 0 ? supply_.iterations_left() : live.size();
  const auto sizes = batches(live);
  const auto without = data_shares_without(live);
  const auto takes_part = drawn(round, live, without);
  std::optional<Epoch> epoch;  // of all shares, unless workers have samples of their own
  std::vector<SampleSupply::Portion> portions;
  bool any = false;
  for (const std::size_t i : order) {
    const std::int64_t count = left > 0 && takes_part[i] ? sizes[i] : 0;
    portions.push_back(supply_.take(count, epoch, data_shares_of(live[i], without)));
    const SampleRange& samples = portions.back().samples;
    if (samples.count() == 0) continue;
    any = true;
    --left;
    if (limits_.data_shares.empty()) epoch = samples.epoch;
  }
  if (!any) return false;
  LW_CHECK(round >= data_.next_round, round, data_.next_round);
  data_.next_round = round + 1;
  std::vector<msg::Lease> shares;
  std::uint32_t largest = 0, drawn_samples = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool has_samples = portions[i].samples.count() > 0;
    shares.push_back(supply_.lease(std::move(portions[i]), {round, sizes[order[i]], 0}));
    largest = std::max(largest, shares.back().batch);
    drawn_samples += has_samples ? shares.back().batch : 0;
  }
  const std::uint32_t samples =
      limits_.participation < 1 ? drawn_samples : round_samples(live.size(), largest);
  if (limits_.round_size.drops())
    data_.open_rounds[round] = {limits_.round_size.of(live.size()), samples};
  for (std::size_t i = 0; i < order.size(); ++i) {
    shares[i].round_samples = samples;
    data_.shares[live[order[i]]].push_back(std::move(shares[i]));
  }
  return true;
}

std::vector<std::uint32_t> LeaseBook::batches(const std::vector<WorkerId>& live) const {
  return balance_ ? balance_->batches(live) : std::vector(live.size(), limits_.batch);
}

std::uint32_t LeaseBook::round_samples(std::size_t live, std::uint32_t largest) const {
  const std::size_t contributors = limits_.round_size.of(live);
  return std::max(largest, limits_.batch * static_cast<std::uint32_t>(contributors));
}

std::vector<SampleRange> LeaseBook::confirm(WorkerId worker, Clock clock) {
  std::vector<SampleRange> news;
  auto& grants = data_.grants[worker];
  while (!grants.empty()) {
    auto& [lease, trained] = grants.front();
    const std::int64_t size = lease.end - lease.begin;
    // A worker may claim any clock: no more than the lease counts, and nothing overflows.
    const std::int64_t done = std::clamp<std::int64_t>(
        clock.value() - lease.first_iteration.value(), 0, lease.iterations());
    const std::int64_t now = std::min(done * lease.batch, size);
    if (now > trained) {
      news.push_back({lease.epoch, lease.begin + trained, lease.begin + now});
      data_.samples_trained += static_cast<std::uint64_t>(now - trained);
      trained = now;
    }
    if (done < lease.iterations()) break;
    grants.pop_front();
  }
  return news;
}

LeaseBook::TakenBack LeaseBook::take_back(WorkerId worker, const PartialIterations& partial) {
  TakenBack all;
  for (const auto& [lease, trained] : data_.grants[worker])
    take_back(worker, lease, lease.begin + (planted(Mutant::trained_leased_again) ? 0 : trained),
              partial, all);
  for (const auto& lease : data_.shares[worker])
    if (lease.begin < lease.end) all.back.push_back(give_back(worker, lease));
  data_.grants.erase(worker);
  data_.shares.erase(worker);
  data_.horizons.erase(worker);
  return all;
}

void LeaseBook::take_back(WorkerId worker, const msg::Lease& lease, std::int64_t begin,
                          const PartialIterations& partial, TakenBack& all) {
  const auto first_of = [&](Iteration iteration) {
    return std::min(lease.begin + (iteration - lease.first_iteration) * lease.batch, lease.end);
  };
  while (begin < lease.end) {
    const Iteration iteration = lease.first_iteration + (begin - lease.begin) / lease.batch;
    if (iteration >= partial.untouched())
      return all.back.push_back(give_back(worker, lease, begin, lease.end, lease.applied));
    auto applied = united(lease.applied, partial.applied(iteration));
    // Iterations that lack the same buckets stay together.
    Iteration next = iteration + 1;
    while (next < partial.untouched() && first_of(next) < lease.end &&
           united(lease.applied, partial.applied(next)) == applied)
      ++next;
    const std::int64_t end = first_of(next);
    if (partial.complete(applied)) {
      data_.samples_trained += static_cast<std::uint64_t>(end - begin);
      all.trained.push_back({lease.epoch, begin, end});
    } else {
      all.back.push_back(give_back(worker, lease, begin, end, std::move(applied)));
    }
    begin = end;
  }
}

template <class Visit>
void LeaseBook::for_each_lease(Visit visit) const {
  for (const auto& [worker, grants] : data_.grants)
    for (const auto& grant : grants) visit(worker, grant.lease);
  for (const auto& [worker, shares] : data_.shares)
    for (const auto& share : shares) visit(worker, share);
}

bool LeaseBook::suffice(Iteration round, const std::vector<WorkerId>& contributors,
                        const std::vector<WorkerId>& live) const {
  if (round < data_.first_open) return false;  // closed already
  const auto open = data_.open_rounds.find(round);
  if (open == data_.open_rounds.end()) return false;  // no worker has a share of it
  std::vector<WorkerId> in_time;
  std::ranges::set_intersection(contributors, live, std::back_inserter(in_time));
  return shares(in_time, round).count >=
         std::min(open->second.contributors, shares(live, round).count);
}

LeaseBook::Shares LeaseBook::shares(const std::vector<WorkerId>& of, Iteration round) const {
  Shares shares;
  for_each_lease([&](WorkerId worker, const msg::Lease& lease) {
    if (lease.first_iteration != round || lease.begin == lease.end ||
        !std::binary_search(of.begin(), of.end(), worker))
      return;
    ++shares.count;
    shares.samples += lease.end - lease.begin;
  });
  return shares;
}

double LeaseBook::scale(Iteration round, const std::vector<WorkerId>& contributors) const {
  const auto open = data_.open_rounds.find(round);
  if (open == data_.open_rounds.end() || planted(Mutant::closed_round_not_scaled)) return 1;
  const auto [count, samples] = shares(contributors, round);
  const auto batches = [&](std::size_t pushes) {
    return static_cast<std::int64_t>(pushes) * limits_.batch;
  };
  const std::int64_t counted = limits_.equal_pushes ? batches(count) : samples;
  const std::int64_t full = batches(open->second.contributors);
  return open->second.samples / static_cast<double>(std::max(counted, full));
}

std::vector<LeaseBook::DroppedShare> LeaseBook::close(Iteration round,
                                                      const std::vector<WorkerId>& contributors) {
  std::vector<DroppedShare> back;
  data_.first_open = round + 1;
  data_.open_rounds.erase(data_.open_rounds.begin(), data_.open_rounds.upper_bound(round));
  const auto contributes = [&](WorkerId worker) {
    return std::binary_search(contributors.begin(), contributors.end(), worker);
  };
  for (const WorkerId worker : contributors)
    for (const auto& grant : data_.grants[worker])
      if (grant.lease.first_iteration == round && grant.lease.begin < grant.lease.end)
        data_.stragglers.erase(worker);
  const auto drop = [&](WorkerId worker, const msg::Lease& lease) {
    if (lease.first_iteration != round) return false;
    data_.stragglers.insert(worker);
    if (lease.begin < lease.end && !planted(Mutant::dropped_samples_lost))
      back.push_back({worker, give_back(worker, lease)});
    return true;
  };
  for (auto& [worker, grants] : data_.grants)
    if (!contributes(worker))
      grants.erase_if([&, who = worker](const Grant& grant) { return drop(who, grant.lease); });
  for (auto& [worker, shares] : data_.shares)
    if (!contributes(worker))
      shares.erase_if([&, who = worker](const msg::Lease& lease) { return drop(who, lease); });
  return back;
}

bool LeaseBook::may_come_back(WorkerId worker) const {
  if (!limits_.round_size.drops()) return false;
  bool open = false;
  for_each_lease([&](WorkerId other, const msg::Lease& lease) {
    open |= other != worker && lease.first_iteration >= data_.first_open && lease.begin < lease.end;
  });
  return open;
}

void LeaseBook::skip_to(WorkerId worker, Iteration iteration) {
  auto& shares = data_.shares[worker];
  for (; !shares.empty() && shares.front().first_iteration < iteration; shares.pop_front())
    if (const auto& lease = shares.front(); lease.begin < lease.end) give_back(worker, lease);
}

SampleRange LeaseBook::give_back(WorkerId worker, const msg::Lease& lease, std::int64_t begin,
                                 std::int64_t end, AppliedBuckets applied) {
  // A lease is below the end of its worker as a whole, or not at all.
  if (snapshot_ && lease.first_iteration < snapshot_->ends[worker])
    snapshot_->supply.give_back(lease, begin, end, applied);
  return supply_.give_back(lease, begin, end, std::move(applied));
}

void LeaseBook::follow_snapshot(std::map<WorkerId, Iteration> ends) {
  snapshot_ = FollowedSnapshot{std::move(ends), supply_};
}

void LeaseBook::admitted(WorkerId worker, Iteration iteration) {
  if (!snapshot_) return;
  Iteration& end = snapshot_->ends[worker];
  end = std::min(end, iteration);
}

std::optional<LeaseBook::FollowedSnapshot> LeaseBook::end_snapshot() {
  return std::exchange(snapshot_, std::nullopt);
}

void LeaseBook::resume(SampleSupply::State supply, Iteration first) {
  data_.samples_trained = supply.samples_leased;
  supply_ = SampleSupply(supply_limits(), std::move(supply));
  data_.horizon = data_.next_round = data_.first_open = first;
}

Iteration LeaseBook::horizon(WorkerId worker) const {
  const auto found = data_.horizons.find(worker);
  return found == data_.horizons.end() ? Iteration() : found->second;
}

bool LeaseBook::all_trained() const {
  // Most of the time the counts say so at once.
  if (anything_to_lease() || data_.samples_trained != samples_leased()) return false;
  const auto empty = [](const auto& entry) { return entry.second.empty(); };
  return std::all_of(data_.grants.begin(), data_.grants.end(), empty) &&
         std::all_of(data_.shares.begin(), data_.shares.end(), empty);
}

}  // namespace leeway
