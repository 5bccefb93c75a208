// LeaseBook under a driver that acts as the scheduler.
#include "actors/scheduler/lease_book.hpp"

#include <rapidcheck/catch.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "core/rng.hpp"
#include "core/text.hpp"
#include "tests/actors/lease_book_driver.hpp"
#include "tests/support/any_sizes.hpp"

using namespace leeway;
using test::LeaseBookDriver;
using test::text_of;
using test::workers;

namespace {

LeaseBook::Limits any_limits(bool by_rounds) {
  LeaseBook::Limits limits;
  limits.data_size = *rc::gen::inRange<std::int64_t>(1, 200);
  limits.total_samples = *rc::gen::inRange<std::int64_t>(1, 3 * limits.data_size + 1);
  limits.batch = *rc::gen::inRange<std::uint32_t>(1, 17);
  limits.lease_size = *rc::gen::inRange<std::uint32_t>(1, 60);
  limits.by_rounds = by_rounds;
  return limits;
}

/// Gives each of `count` workers its own samples, for whole epochs.
void divide(LeaseBook::Limits& limits, std::uint32_t count) {
  limits.data_size += count;
  limits.total_samples = limits.data_size * *rc::gen::inRange<std::int64_t>(1, 4);
  limits.data_shares = {0};
  for (std::uint32_t left = count; left > 0; --left) {
    const std::int64_t most = limits.data_size - limits.data_shares.back() - left + 1;
    const std::int64_t size = left == 1 ? most : *rc::gen::inRange<std::int64_t>(1, most + 1);
    limits.data_shares.push_back(limits.data_shares.back() + size);
  }
}

/// Returns the number of snapshots that were compared with what the book has followed.
std::int64_t drive(LeaseBook::Limits limits, bool equal = true, bool divided = false) {
  const auto count = *rc::gen::inRange<std::uint32_t>(1, 6);
  if (divided) divide(limits, count);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto steps = *rc::gen::inRange(0, 200);
  LeaseBookDriver driver(limits, count, seed,
                         equal ? nullptr : std::make_shared<test::AnySizes>(limits.batch, seed));
  for (int i = 0; i < steps; ++i) driver.step();
  driver.finish();
  driver.check_end();
  return driver.snapshots();
}

}  // namespace

TEST_CASE("every sample of every epoch is trained once when workers die, idle and return") {
  std::int64_t snapshots = 0;
  rc::prop("leases on request", [&] { snapshots += drive(any_limits(false)); });
  rc::prop("rounds", [&] { snapshots += drive(any_limits(true)); });
  rc::prop("leases of unequal batches", [&] { snapshots += drive(any_limits(false), false); });
  rc::prop("rounds of unequal batches", [&] { snapshots += drive(any_limits(true), false); });
  rc::prop("workers with samples of their own", [&] {
    const bool by_rounds = *rc::gen::arbitrary<bool>();
    snapshots += drive(any_limits(by_rounds), *rc::gen::arbitrary<bool>(), true);
  });
  rc::prop("rounds that are closed early", [&] {
    auto limits = any_limits(true);
    const auto count = *rc::gen::inRange<std::uint32_t>(1, 5);
    limits.round_size =
        *rc::gen::arbitrary<bool>() ? RoundSize::all_but(count) : RoundSize::at_least(count);
    if (*rc::gen::arbitrary<bool>())
      limits.total_iterations = *rc::gen::inRange<std::uint64_t>(1, 60);
    snapshots += drive(limits);
  });
  CHECK(snapshots > 100);
}

TEST_CASE("the run ends at the limit of iterations") {
  rc::prop("with and without rounds", [] {
    auto limits = any_limits(*rc::gen::arbitrary<bool>());
    if (*rc::gen::arbitrary<bool>()) limits.total_samples = 0;
    limits.total_iterations = *rc::gen::inRange<std::uint64_t>(1, 60);
    drive(limits, *rc::gen::arbitrary<bool>());
  });
  rc::prop("without faults, all iterations of the limit are granted", [] {
    auto limits = any_limits(*rc::gen::arbitrary<bool>());
    limits.total_samples = 0;
    const auto count = *rc::gen::inRange<std::uint32_t>(1, 6);
    // Full rounds only, so that every iteration has samples.
    limits.data_size = limits.batch * count * *rc::gen::inRange<std::int64_t>(1, 20);
    limits.total_iterations = *rc::gen::inRange<std::uint64_t>(1, 60);
    LeaseBookDriver driver(limits, count, 1);
    driver.finish();
    driver.check_end();
    const auto granted = static_cast<std::uint64_t>(driver.iterations());
    RC_ASSERT(granted == limits.total_iterations);
  });
}

TEST_CASE(
    "without faults, rounds are slices of the epochs in worker order, in any order of requests") {
  rc::prop("any order of requests", [](std::uint64_t seed) {
    const auto limits = any_limits(true);
    const auto live = workers(*rc::gen::inRange<std::uint32_t>(1, 6));
    LeaseBook book(limits);
    Rng rng(seed);
    std::int64_t expected = 0;  // position over all epochs
    for (Iteration round; expected < limits.total_samples; ++round) {
      auto order = live;
      rng.shuffle(std::span(order));
      std::map<WorkerId, msg::Lease> shares;
      for (const WorkerId worker : order) {
        const auto lease = book.grant(worker, round, live);
        RC_ASSERT(lease.has_value());
        shares[worker] = *lease;
      }
      const Epoch epoch(expected / limits.data_size);
      const std::int64_t left =
          std::min(limits.total_samples - expected, limits.data_size - expected % limits.data_size);
      std::int64_t rest = left;
      for (const auto& [worker, share] : shares) {
        const std::int64_t size = std::min<std::int64_t>(rest, limits.batch);
        RC_ASSERT(share.epoch == epoch);
        RC_ASSERT(share.end - share.begin == size);
        if (size > 0) RC_ASSERT(share.begin == expected % limits.data_size);
        rest -= size;
        expected += size;
      }
    }
    RC_ASSERT(!book.anything_to_lease());
  });
}

TEST_CASE("leases have consecutive iterations, and a repeated request gets the same lease") {
  LeaseBook book({.data_size = 100, .total_samples = 0, .batch = 8, .lease_size = 40});
  const auto live = workers(2);
  const auto first = book.grant(WorkerId(0), Iteration(0), live);
  REQUIRE(first);
  CHECK(first->iterations() == 5);
  CHECK(text_of(book.grant(WorkerId(0), Iteration(0), live)) == text_of(first));
  const auto second = book.grant(WorkerId(0), Iteration(5), live);
  CHECK(second->begin == 40);
  const auto third = book.grant(WorkerId(1), Iteration(3), live);
  CHECK(third->begin == 80);
  CHECK(third->end == 100);  // a lease never spans two epochs
  CHECK(third->iterations() == 3);
  CHECK(book.epoch() == Epoch(1));
  CHECK(book.grant(WorkerId(1), Iteration(6), live)->epoch == Epoch(1));
  CHECK(book.horizon() == Iteration(11));
}

TEST_CASE("leases shrink to one batch towards the end of the run") {
  const std::int64_t batch = 8, lease_size = 64, workers_count = 4;
  LeaseBook book({.data_size = 1024, .total_samples = 1024, .batch = 8, .lease_size = 64});
  std::int64_t left = 1024, before = lease_size, leases = 0;
  for (Iteration next; book.anything_to_lease(); ++leases) {
    const auto lease = book.grant(WorkerId(0), next, workers(4));
    const std::int64_t size = lease->end - lease->begin;
    const std::int64_t share = left / (2 * workers_count);
    CHECK(size == std::clamp((share + batch - 1) / batch * batch, batch, lease_size));
    CHECK(size <= before);
    before = size;
    left -= size;
    next = next + lease->iterations();
  }
  CHECK(left == 0);
  CHECK(before == batch);
  CHECK(leases > 1024 / lease_size);
  // Without a limit they do not shrink.
  LeaseBook endless({.data_size = 1024, .total_samples = 0, .batch = 8, .lease_size = 64});
  for (int i = 0; i < 40; ++i)
    CHECK(endless.grant(WorkerId(0), Iteration(8 * i), workers(4))->iterations() == 8);
}

TEST_CASE("samples that a dead worker has not finished are leased first") {
  LeaseBook book({.data_size = 64, .total_samples = 64, .batch = 4, .lease_size = 16});
  const auto live = workers(2);
  const auto lost = book.grant(WorkerId(0), Iteration(0), live);
  REQUIRE(lost->end == 16);
  const auto done = book.confirm(WorkerId(0), Clock(1));
  CHECK(done == std::vector<SampleRange>{{Epoch(0), 0, 4}});
  CHECK(book.take_back(WorkerId(0)).back == std::vector<SampleRange>{{Epoch(0), 4, 16}});
  CHECK(book.samples_leased() == 4);
  const auto again = book.grant(WorkerId(1), Iteration(0), {WorkerId(1)});
  CHECK(again->begin == 4);
  CHECK(again->end == 16);
}

TEST_CASE("a clock far beyond the leases confirms only the leases") {
  LeaseBook book({.data_size = 64, .total_samples = 64, .batch = 1u << 20, .lease_size = 64});
  REQUIRE(book.grant(WorkerId(0), Iteration(0), workers(1)));
  CHECK(book.confirm(WorkerId(0), Clock((std::int64_t{1} << 62) - 1)).size() == 1);
  CHECK(book.samples_trained() == 64);
}

TEST_CASE("the largest limit of iterations is never reached") {
  LeaseBook book({.data_size = 64,
                  .total_samples = 0,
                  .total_iterations = ~std::uint64_t{0},
                  .batch = 8,
                  .lease_size = 32});
  CHECK(book.grant(WorkerId(0), Iteration(0), workers(1))->iterations() == 4);
  CHECK(book.anything_to_lease());
}

TEST_CASE("a worker gets samples from its own data share, and then from those of absent workers") {
  LeaseBook book({.data_size = 30,
                  .total_samples = 60,
                  .batch = 4,
                  .lease_size = 8,
                  .data_shares = {0, 10, 20, 30}});
  const auto all = workers(3), two = workers(2);
  const auto taken = [&](std::uint32_t worker, std::int64_t next, const auto& live) {
    const auto lease = book.grant(WorkerId(worker), Iteration(next), live);
    return lease ? std::pair(lease->epoch.value(), lease->begin) : std::pair(-1l, -1l);
  };
  CHECK(taken(1, 0, all) == std::pair(0l, 10l));
  CHECK(taken(0, 0, all) == std::pair(0l, 0l));
  CHECK(taken(1, 2, all) == std::pair(0l, 18l));
  CHECK(taken(1, 3, all) == std::pair(1l, 10l));  // its own second epoch
  CHECK(taken(1, 5, all) == std::pair(1l, 18l));
  CHECK(taken(1, 6, all) == std::pair(-1l, -1l));
  CHECK(book.anything_to_lease());
  CHECK_FALSE(book.anything_for_others(all));
  CHECK(book.anything_for_others(two));
  CHECK(taken(1, 6, two) == std::pair(0l, 20l));  // of worker 2, which is absent
}

TEST_CASE("some workers are drawn for each round, and the others have empty shares of it") {
  LeaseBook book({.data_size = 4000,
                  .total_samples = 4000,
                  .batch = 2,
                  .by_rounds = true,
                  .participation = 0.3,
                  .seed = 5});
  const auto live = workers(10);
  std::map<WorkerId, int> drawn;
  for (Iteration round; round < Iteration(100); ++round) {
    int with_samples = 0;
    for (const WorkerId worker : live) {
      const auto share = book.grant(worker, round, live);
      REQUIRE(share);
      CHECK(share->round_samples == 6);
      if (share->begin == share->end) continue;
      ++with_samples;
      ++drawn[worker];
    }
    CHECK(with_samples == 3);
  }
  for (const WorkerId worker : live) CHECK((drawn[worker] > 15 && drawn[worker] < 45));
}
