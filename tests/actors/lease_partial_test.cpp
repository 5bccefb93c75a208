// LeaseBook and partial iterations: after a worker dies, only some buckets have the gradients of
// its samples. Each bucket still gets each sample exactly once.
#include <algorithm>
#include <catch2/catch.hpp>

#include "actors/scheduler/lease_book.hpp"
#include "core/check.hpp"
#include "core/rng.hpp"
#include "tests/support/any_sizes.hpp"
#include "tests/support/worker_ids.hpp"

using namespace leeway;
using leeway::test::workers;

namespace {

using Ranges = std::vector<SampleRange>;

/// The coverage of the property tests.
struct Seen {
  std::int64_t listed = 0;     // leases with a list
  std::int64_t twice = 0;      // samples that went back with a list for the second time
  std::int64_t completed = 0;  // samples that several dead workers have completed together
};

/// Members that push their leases bucket by bucket, in any order, and die at any time. Counts the
/// gradients that each bucket gets of each sample. Throws CheckFailed if a count is not 1.
class BucketDriver {
 public:
  BucketDriver(const LeaseBook::Limits& limits, std::uint32_t count, std::uint64_t seed, bool equal,
               Seen& seen)
      : limits_(limits),
        book_(limits, equal ? nullptr : std::make_shared<test::AnySizes>(limits.batch, seed)),
        rng_(seed),
        seen_(seen),
        members_(count) {
    const auto stages = static_cast<std::uint16_t>(1 + rng_.below(3));
    const auto shards = static_cast<std::uint16_t>(1 + rng_.below(3));
    for (std::uint16_t stage = 0; stage < stages; ++stage)
      for (std::uint16_t shard = 0; shard < shards; ++shard)
        if (shard == stage % shards || rng_.one_in(2)) {
          const auto buckets = static_cast<std::uint32_t>(1 + rng_.below(3));
          pairs_.push_back({stage, shard, buckets});
          for (std::uint32_t bucket = 0; bucket < buckets; ++bucket)
            all_.push_back({stage, shard, bucket});
        }
    for (auto& member : members_) member.at.resize(pairs_.size());
    counts_.resize(static_cast<std::size_t>(limits.total_samples));
    for (auto& sample : counts_) sample.resize(all_.size());
    trained_.resize(counts_.size());
  }

  void step() {
    const WorkerId id(static_cast<std::uint32_t>(rng_.below(members_.size())));
    auto& member = at(id);
    const std::uint64_t action = rng_.below(16);
    if (action == 0 && member.live) {
      kill(id);
    } else if (action < 3 && !member.live) {
      revive(id);
    } else if (action < 6 && member.live) {
      request(id);
    } else if (member.live) {
      push(id, rng_.below(pairs_.size()));
      if (action == 7) confirm(id);
    }
  }

  /// All members train without faults until no samples are left.
  void finish() {
    for (int round = 0; !book_.all_trained(); ++round) {
      LW_CHECK(round < 10'000, "all_trained() stays false");
      for (std::uint32_t i = 0; i < members_.size(); ++i) {
        const WorkerId id(i);
        if (!at(id).live && book_.anything_to_lease()) revive(id);
        if (!at(id).live) continue;
        const bool more = request(id);
        for (std::size_t pair = 0; pair < pairs_.size(); ++pair)
          while (push(id, pair)) {
          }
        confirm(id);
        if (more) continue;
        book_.take_back(id);
        leave(id);
        if (book_.anything_to_lease()) revive(id);
      }
    }
    const auto trained =
        static_cast<std::size_t>(std::count(trained_.begin(), trained_.end(), true));
    LW_CHECK(book_.samples_trained() == trained, book_.samples_trained(), trained);
    LW_CHECK(book_.samples_leased() == trained, book_.samples_leased());
    LW_CHECK(trained == counts_.size() || book_.at_last_iteration(), trained, counts_.size());
    LW_CHECK(!book_.has_partial(), "some buckets lack samples that others have");
    for (std::size_t i = 0; i < counts_.size(); ++i)
      for (std::size_t bucket = 0; bucket < all_.size(); ++bucket)
        LW_CHECK(counts_[i][bucket] == (trained_[i] ? 1 : 0), i, bucket, counts_[i][bucket]);
  }

 private:
  struct Pair {
    std::uint16_t stage, shard;
    std::uint32_t buckets;
  };
  struct PairState {
    Clock clock;                      // whole iterations that the shard has
    std::vector<std::uint32_t> next;  // buckets that the shard has of the next iteration
  };
  struct Member {
    bool live = true;
    Iteration next;  // of the next request
    std::vector<msg::Lease> leases;
    std::vector<PairState> at;
  };

  Member& at(WorkerId id) { return members_[id.value()]; }
  std::vector<WorkerId> live() const {
    std::vector<WorkerId> ids;
    for (std::uint32_t i = 0; i < members_.size(); ++i)
      if (members_[i].live) ids.push_back(WorkerId(i));
    return ids;
  }
  std::size_t index(Epoch epoch, std::int64_t position) const {
    return static_cast<std::size_t>(epoch.value() * limits_.data_size + position);
  }
  std::size_t index(const msg::AppliedBucket& bucket) const {
    return static_cast<std::size_t>(std::find(all_.begin(), all_.end(), bucket) - all_.begin());
  }

  bool request(WorkerId id) {
    auto& member = at(id);
    const auto lease = book_.grant(id, member.next, live());
    if (!lease) return false;
    // The lease lists the buckets that have each of its samples.
    for (std::int64_t i = lease->begin; i < lease->end; ++i)
      for (const auto& bucket : all_) {
        const bool has = counts_[index(lease->epoch, i)][index(bucket)] > 0;
        const bool named = std::binary_search(lease->applied.begin(), lease->applied.end(), bucket);
        LW_CHECK(has == named, i, bucket.stage, bucket.shard, bucket.bucket, has);
      }
    seen_.listed += lease->applied.empty() ? 0 : 1;
    const auto again = book_.grant(id, member.next, live());
    LW_CHECK(again && again->lease == lease->lease && again->applied == lease->applied);
    member.leases.push_back(*lease);
    member.next = member.next + lease->iterations();
    return true;
  }

  /// Delivers a bucket of a stage's next iteration to a shard. False if the iteration is not
  /// leased.
  bool push(WorkerId id, std::size_t pair) {
    auto& member = at(id);
    auto& [clock, has] = member.at[pair];
    if (clock.value() >= member.next.value()) return false;
    std::vector<std::uint32_t> missing;
    for (std::uint32_t bucket = 0; bucket < pairs_[pair].buckets; ++bucket)
      if (std::find(has.begin(), has.end(), bucket) == has.end()) missing.push_back(bucket);
    const std::uint32_t bucket = missing[rng_.below(missing.size())];
    has.push_back(bucket);
    if (!limits_.by_rounds) apply(member, Iteration(clock.value()), pair, bucket);
    if (missing.size() > 1) return true;
    // By rounds, whole iterations are applied with their round; others are dropped.
    if (limits_.by_rounds)
      for (const std::uint32_t one : has) apply(member, Iteration(clock.value()), pair, one);
    has.clear();
    ++clock;
    return true;
  }

  void apply(const Member& member, Iteration iteration, std::size_t pair, std::uint32_t bucket) {
    const msg::AppliedBucket name{pairs_[pair].stage, pairs_[pair].shard, bucket};
    for (const auto& lease : member.leases) {
      const std::int64_t k = iteration - lease.first_iteration;
      if (k < 0 || k >= lease.iterations()) continue;
      if (std::binary_search(lease.applied.begin(), lease.applied.end(), name)) return;  // empty
      const std::int64_t begin = lease.begin + k * lease.batch;
      for (std::int64_t i = begin; i < std::min(begin + lease.batch, lease.end); ++i)
        LW_CHECK(++counts_[index(lease.epoch, i)][index(name)] == 1, "trained twice", i, bucket);
      return;
    }
    LW_CHECK(false, "pushed without a lease", iteration);
  }

  void note_trained(const Ranges& ranges) {
    for (const auto& range : ranges)
      for (std::int64_t i = range.begin; i < range.end; ++i) {
        const std::size_t sample = index(range.epoch, i);
        LW_CHECK(!trained_[sample], "reported twice", i);
        trained_[sample] = true;
        for (std::size_t bucket = 0; bucket < all_.size(); ++bucket)
          LW_CHECK(counts_[sample][bucket] == 1, "reported too early", i, bucket);
      }
  }

  void confirm(WorkerId id) {
    Clock least = at(id).at.front().clock;
    for (const auto& pair : at(id).at) least = std::min(least, pair.clock);
    note_trained(book_.confirm(id, least));
  }

  void kill(WorkerId id) {
    auto& member = at(id);
    PartialIterations partial;
    for (std::size_t pair = 0; pair < pairs_.size(); ++pair) {
      auto applied = limits_.by_rounds ? std::vector<std::uint32_t>() : member.at[pair].next;
      std::sort(applied.begin(), applied.end());
      partial.add(pairs_[pair].stage, ShardId(pairs_[pair].shard), member.at[pair].clock, applied,
                  pairs_[pair].buckets);
    }
    note_trained(book_.confirm(id, partial.whole()));
    const auto taken = book_.take_back(id, partial);
    note_trained(taken.trained);
    for (const auto& range : taken.trained) seen_.completed += range.count();
    for (const auto& range : taken.back)
      for (std::int64_t i = range.begin; i < range.end; ++i) {
        const auto& counts = counts_[index(range.epoch, i)];
        LW_CHECK(std::count(counts.begin(), counts.end(), 0) > 0, "no bucket is missing", i);
        for (const auto& lease : member.leases)
          seen_.twice += lease.epoch == range.epoch && lease.begin <= i && i < lease.end &&
                         !lease.applied.empty();
      }
    leave(id);
  }

  void leave(WorkerId id) {
    at(id).live = false;
    at(id).leases.clear();
  }

  void revive(WorkerId id) {
    auto& member = at(id);
    member.live = true;
    member.next = std::max(member.next, book_.horizon());
    book_.skip_to(id, member.next);
    for (auto& pair : member.at) pair = {Clock(member.next.value()), {}};
  }

  LeaseBook::Limits limits_;
  LeaseBook book_;
  Rng rng_;
  Seen& seen_;
  std::vector<Member> members_;
  std::vector<Pair> pairs_;
  AppliedBuckets all_;                    // of the model
  std::vector<std::vector<int>> counts_;  // by sample over all epochs, and by bucket
  std::vector<bool> trained_;             // by sample, as reported by the book
};

/// Runs a random driver. A failure prints the seed.
void run(std::uint64_t seed, bool by_rounds, bool equal, bool limited, Seen& seen) {
  Rng rng(seed);
  const auto between = [&](std::uint64_t least, std::uint64_t most) {
    return least + rng.below(most - least + 1);
  };
  LeaseBook::Limits limits;
  limits.data_size = static_cast<std::int64_t>(between(1, 80));
  limits.total_samples = static_cast<std::int64_t>(between(1, 160)) % (2 * limits.data_size) + 1;
  limits.batch = static_cast<std::uint32_t>(between(1, 8));
  limits.lease_size = static_cast<std::uint32_t>(between(1, 40));
  limits.by_rounds = by_rounds;
  if (limited) limits.total_iterations = between(1, 40);
  BucketDriver driver(limits, static_cast<std::uint32_t>(between(1, 4)), rng.next(), equal, seen);
  for (std::uint64_t steps = between(0, 600); steps > 0; --steps) driver.step();
  driver.finish();
}

/// For two stages: the first has one bucket on shard 0 and two on shard 1, the second has one
/// bucket on shard 1.
PartialIterations partial_at(std::int64_t first, std::vector<std::uint32_t> applied,
                             std::int64_t second, std::int64_t third) {
  PartialIterations partial;
  partial.add(0, ShardId(0), Clock(first), {}, 1);
  partial.add(0, ShardId(1), Clock(second), applied, 2);
  partial.add(1, ShardId(1), Clock(third), {}, 1);
  return partial;
}

}  // namespace

TEST_CASE("each bucket gets each sample exactly once when workers die in the middle of a push") {
  for (const bool by_rounds : {false, true}) {
    Seen seen;
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
      INFO("seed " << seed << (by_rounds ? ", rounds" : ", no rounds"));
      REQUIRE_NOTHROW(run(seed, by_rounds, seed % 2 == 0, false, seen));
    }
    CHECK(seen.listed > 5000);
    CHECK(seen.twice > 10000);
    CHECK(seen.completed > 500);
  }
}

TEST_CASE("at the limit of iterations, all buckets have the same samples") {
  Seen seen;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    INFO("seed " << seed);
    REQUIRE_NOTHROW(run(seed, seed % 4 == 3, seed % 2 == 0, true, seen));
  }
  CHECK(seen.listed > 1000);
}

TEST_CASE("partial iterations go back one by one, each with the list of buckets that have it") {
  LeaseBook book({.data_size = 64, .total_samples = 64, .batch = 4, .lease_size = 16});
  REQUIRE(book.grant(WorkerId(0), Iteration(0), workers(2))->end == 16);
  book.confirm(WorkerId(0), Clock(1));
  const auto taken = book.take_back(WorkerId(0), partial_at(3, {1}, 2, 1));
  CHECK(taken.back == Ranges{{Epoch(0), 4, 8}, {Epoch(0), 8, 12}, {Epoch(0), 12, 16}});
  CHECK(taken.trained.empty());
  // Each is a separate lease, even if the lease size is larger.
  const auto live = std::vector{WorkerId(1)};
  const auto one = book.grant(WorkerId(1), Iteration(0), live);
  CHECK(one->begin == 4);
  CHECK(one->end == 8);
  CHECK(one->applied == AppliedBuckets{{0, 0, 0}, {0, 1, 0}, {0, 1, 1}});
  const auto two = book.grant(WorkerId(1), Iteration(1), live);
  CHECK(two->end == 12);
  CHECK(two->applied == AppliedBuckets{{0, 0, 0}, {0, 1, 1}});
  const auto rest = book.grant(WorkerId(1), Iteration(2), live);
  CHECK(rest->end == 16);
  CHECK(rest->applied.empty());
  CHECK(book.grant(WorkerId(1), Iteration(3), live)->begin == 16);
}

TEST_CASE("partial iterations that lack the same buckets go back together") {
  LeaseBook book({.data_size = 64, .total_samples = 64, .batch = 4, .lease_size = 16});
  REQUIRE(book.grant(WorkerId(0), Iteration(0), workers(1)));
  const auto taken = book.take_back(WorkerId(0), partial_at(3, {}, 3, 0));
  CHECK(taken.back == Ranges{{Epoch(0), 0, 12}, {Epoch(0), 12, 16}});
  const auto lease = book.grant(WorkerId(0), Iteration(3), workers(1));
  CHECK(lease->iterations() == 3);
  CHECK(lease->applied == AppliedBuckets{{0, 0, 0}, {0, 1, 0}, {0, 1, 1}});
}

TEST_CASE("a smaller batch divides a partial iteration, and each piece has the list") {
  const auto balance = std::make_shared<BySpeed>(8);
  LeaseBook book({.data_size = 64, .total_samples = 64, .batch = 8, .lease_size = 8}, balance);
  REQUIRE(book.grant(WorkerId(0), Iteration(0), workers(2))->end == 8);
  book.take_back(WorkerId(0), partial_at(1, {}, 0, 0));
  for (const std::uint32_t worker : {0u, 1u})
    balance->measured(WorkerId(worker), {8, 800, worker == 1 ? 5'000'000 : 1'000'000});
  Iteration next;
  for (std::int64_t begin = 0; begin < 8;) {
    const auto lease = book.grant(WorkerId(1), next, workers(2));
    REQUIRE(lease->batch < 8);
    CHECK(lease->begin == begin);
    CHECK(lease->end <= 8);
    CHECK(lease->applied == AppliedBuckets{{0, 0, 0}});
    begin = lease->end;
    next = next + lease->iterations();
  }
  CHECK(next > Iteration(1));
  CHECK(book.grant(WorkerId(1), next, workers(2))->applied.empty());
}

TEST_CASE("when a second worker dies with the same samples, their lists are united") {
  LeaseBook book({.data_size = 8, .total_samples = 8, .batch = 4, .lease_size = 4});
  REQUIRE(book.grant(WorkerId(0), Iteration(0), workers(1)));
  book.take_back(WorkerId(0), partial_at(0, {0}, 0, 0));
  REQUIRE(book.grant(WorkerId(1), Iteration(5), {WorkerId(1)}));
  book.confirm(WorkerId(1), Clock(5));
  CHECK(book.take_back(WorkerId(1), partial_at(6, {}, 5, 5)).back == Ranges{{Epoch(0), 0, 4}});
  const auto third = book.grant(WorkerId(2), Iteration(9), {WorkerId(2)});
  CHECK(third->applied == AppliedBuckets{{0, 0, 0}, {0, 1, 0}});
  // The worker dies before its first push, so the list stays.
  CHECK(book.take_back(WorkerId(2)).back == Ranges{{Epoch(0), 0, 4}});
  CHECK(book.grant(WorkerId(3), Iteration(9), {WorkerId(3)})->applied == third->applied);
}

TEST_CASE("samples that dead workers have completed together are not leased again") {
  LeaseBook book({.data_size = 8, .total_samples = 8, .batch = 4, .lease_size = 8});
  REQUIRE(book.grant(WorkerId(0), Iteration(0), workers(1))->end == 4);
  REQUIRE(book.grant(WorkerId(0), Iteration(1), workers(1))->end == 8);
  book.take_back(WorkerId(0), partial_at(2, {}, 2, 0));
  REQUIRE(book.grant(WorkerId(0), Iteration(2), workers(1)));
  // The second stage has pushed the missing buckets of iteration 2; the first has pushed nothing.
  const auto taken = book.take_back(WorkerId(0), partial_at(2, {}, 2, 3));
  CHECK(taken.back.empty());
  CHECK(taken.trained == Ranges{{Epoch(0), 0, 4}});
  CHECK(book.samples_trained() == 4);
  CHECK(book.samples_leased() == 4);
  const auto last = book.grant(WorkerId(0), Iteration(3), workers(1));
  CHECK(last->begin == 4);
  book.confirm(WorkerId(0), Clock(4));
  CHECK(book.all_trained());
}

TEST_CASE("by rounds, partial samples form a separate share") {
  LeaseBook book({.data_size = 40, .total_samples = 40, .batch = 4, .by_rounds = true});
  const auto live = workers(2);
  REQUIRE(book.grant(WorkerId(0), Iteration(0), live));
  REQUIRE(book.grant(WorkerId(1), Iteration(0), live)->begin == 4);
  book.take_back(WorkerId(1), partial_at(1, {}, 0, 1));
  book.confirm(WorkerId(0), Clock(1));
  const auto partial = book.grant(WorkerId(0), Iteration(1), live);
  CHECK(partial->begin == 4);
  CHECK(partial->end == 8);
  CHECK(partial->applied == AppliedBuckets{{0, 0, 0}, {1, 1, 0}});
  const auto beside = book.grant(WorkerId(1), Iteration(1), live);
  CHECK(beside->begin == 8);
  CHECK(beside->applied.empty());
}
