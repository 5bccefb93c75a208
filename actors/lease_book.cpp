#include "actors/lease_book.hpp"

#include <algorithm>

#include "core/check.hpp"
#include "core/mutant.hpp"

namespace leeway {

std::optional<msg::Lease> LeaseBook::grant(WorkerId worker, Iteration next,
                                           const std::vector<WorkerId>& live) {
  for (const auto& grant : grants_[worker])
    if (grant.lease.first_iteration == next) return grant.lease;
  std::optional<msg::Lease> lease;
  if (limits_.by_rounds) {
    auto& shares = shares_[worker];
    // Rounds before `next` were cut for a worker that started later.
    if (shares.empty() && (next < next_round_ || !cut_round(next, live))) return std::nullopt;
    // A worker that asks for another iteration than its next is told that there is no data.
    if (shares.front().first_iteration != next) return std::nullopt;
    lease = shares.front();
    shares.pop_front();
  } else {
    lease = grant_chunk(next, live);
    if (!lease) return std::nullopt;
  }
  horizon_ = std::max(horizon_, lease->first_iteration + lease->iterations());
  grants_[worker].push_back({*lease, 0});
  return lease;
}

std::optional<msg::Lease> LeaseBook::grant_chunk(Iteration next,
                                                 const std::vector<WorkerId>& live) {
  const std::int64_t batch = limits_.batch;
  std::int64_t count = std::max<std::int64_t>(limits_.chunk, batch);
  if (limits_.total_samples > 0) {
    // Smaller leases towards the end, so that nobody is left with a long one (guided
    // self-scheduling, Polychronopoulos and Kuck, IEEE Trans. Computers 1987).
    const auto guided = fresh_left() / static_cast<std::int64_t>(2 * live.size());
    count = std::clamp((guided + batch - 1) / batch * batch, batch, count);
  }
  if (limits_.total_iterations > 0) {
    const auto left = limits_.total_iterations - iterations_granted_;
    if (left < static_cast<std::uint64_t>(count))
      count = std::min(count, static_cast<std::int64_t>(left) * batch);
  }
  const SampleRange range = take(count, std::nullopt);
  if (range.count() == 0) return std::nullopt;
  auto lease = lease_of(range, next, live.size());
  iterations_granted_ += static_cast<std::uint64_t>(lease.iterations());
  return lease;
}

bool LeaseBook::cut_round(Iteration round, const std::vector<WorkerId>& live) {
  // Where the limit of iterations ends inside a round, the last workers have an empty part in it:
  // were the round not cut at all, it could never be reached.
  std::uint64_t with_samples = live.size();
  if (limits_.total_iterations > 0)
    with_samples = std::min(with_samples, limits_.total_iterations - iterations_granted_);
  if (with_samples == 0) return false;
  SampleRange part = take(limits_.batch, std::nullopt);
  if (part.count() == 0) return false;
  LW_CHECK(round >= next_round_, round, next_round_);
  next_round_ = round + 1;
  const Epoch epoch = part.epoch;
  for (std::size_t i = 0; i < live.size(); ++i) {
    if (i > 0) part = take(i < with_samples ? limits_.batch : 0, epoch);
    if (part.count() > 0) ++iterations_granted_;
    shares_[live[i]].push_back(lease_of(part, round, live.size()));
  }
  return true;
}

msg::Lease LeaseBook::lease_of(const SampleRange& range, Iteration first, std::size_t live) {
  samples_leased_ += static_cast<std::uint64_t>(range.count());
  msg::Lease lease;
  lease.lease = LeaseId(next_lease_++);
  lease.epoch = range.epoch;
  lease.begin = range.begin;
  lease.end = range.end;
  lease.first_iteration = first;
  lease.batch = limits_.batch;
  lease.round_samples = limits_.batch * static_cast<std::uint32_t>(live);
  return lease;
}

std::int64_t LeaseBook::fresh_left() const {
  return limits_.total_samples == 0 ? limits_.data_size : limits_.total_samples - fresh_;
}

SampleRange LeaseBook::take(std::int64_t count, std::optional<Epoch> only) {
  if (!returned_.empty() && (!only || returned_.front().epoch == *only)) {
    auto& front = returned_.front();
    SampleRange range{front.epoch, front.begin, std::min(front.end, front.begin + count)};
    front.begin = range.end;
    if (front.count() == 0) returned_.pop_front();
    return range;
  }
  const Epoch now = epoch();
  const std::int64_t position = fresh_ % limits_.data_size;
  if (only && now != *only) return {*only, 0, 0};
  const std::int64_t taken =
      std::max<std::int64_t>(0, std::min({count, limits_.data_size - position, fresh_left()}));
  fresh_ += taken;
  return {now, position, position + taken};
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

std::vector<SampleRange> LeaseBook::take_back(WorkerId worker) {
  std::vector<SampleRange> back;
  for (const auto& [lease, trained] : grants_[worker])
    if (lease.begin + trained < lease.end)
      back.push_back({lease.epoch,
                      lease.begin + (planted(Mutant::trained_leased_again) ? 0 : trained),
                      lease.end});
  for (const auto& lease : shares_[worker])
    if (lease.begin < lease.end) back.push_back({lease.epoch, lease.begin, lease.end});
  grants_.erase(worker);
  shares_.erase(worker);
  for (const auto& range : back) give_back(range);
  return back;
}

void LeaseBook::give_back(const SampleRange& range) {
  samples_leased_ -= static_cast<std::uint64_t>(range.count());
  iterations_granted_ -=
      static_cast<std::uint64_t>((range.count() + limits_.batch - 1) / limits_.batch);
  returned_.push_back(range);
  if (planted(Mutant::leased_twice)) returned_.push_back(range);
}

void LeaseBook::skip_to(WorkerId worker, Iteration iteration) {
  auto& shares = shares_[worker];
  for (; !shares.empty() && shares.front().first_iteration < iteration; shares.pop_front())
    if (const auto& lease = shares.front(); lease.begin < lease.end)
      give_back({lease.epoch, lease.begin, lease.end});
}

bool LeaseBook::anything_to_lease() const {
  if (limits_.total_iterations > 0 && iterations_granted_ >= limits_.total_iterations) return false;
  return !returned_.empty() || fresh_left() > 0;
}

bool LeaseBook::all_trained() const {
  if (anything_to_lease()) return false;
  const auto empty = [](const auto& entry) { return entry.second.empty(); };
  return std::all_of(grants_.begin(), grants_.end(), empty) &&
         std::all_of(shares_.begin(), shares_.end(), empty);
}

}  // namespace leeway
