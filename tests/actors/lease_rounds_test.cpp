// LeaseBook by rounds: short rounds, late starts, and rounds that are closed early.
#include <catch2/catch.hpp>

#include "actors/scheduler/lease_book.hpp"
#include "core/rng.hpp"
#include "policies/balance/by_speed.hpp"
#include "tests/support/worker_ids.hpp"

using namespace leeway;
using leeway::test::workers;

TEST_CASE(
    "rounds are shared in worker order, and the last workers get no samples of a short last "
    "round") {
  LeaseBook book({.data_size = 96, .total_samples = 96, .batch = 64, .by_rounds = true});
  const auto live = workers(4);
  std::vector<std::int64_t> sizes;
  for (const std::uint32_t asking : {3u, 1u, 0u, 2u})
    book.grant(WorkerId(asking), Iteration(0), live);
  for (const WorkerId worker : live) {
    const auto lease = book.grant(worker, Iteration(0), live);  // the same answer
    REQUIRE(lease);
    CHECK(lease->iterations() == 1);
    CHECK(lease->round_samples == 256);
    sizes.push_back(lease->end - lease->begin);
  }
  CHECK(sizes == std::vector<std::int64_t>{64, 32, 0, 0});
  CHECK(book.grant(WorkerId(1), Iteration(0), live)->begin == 64);
  CHECK_FALSE(book.anything_to_lease());
  CHECK_FALSE(book.grant(WorkerId(0), Iteration(1), live));
  CHECK_FALSE(book.all_trained());
  for (const WorkerId worker : live) book.confirm(worker, Clock(1));
  CHECK(book.all_trained());
  CHECK(book.samples_trained() == 96);
}

TEST_CASE("a worker that starts later returns its shares of earlier rounds") {
  LeaseBook book({.data_size = 40, .total_samples = 40, .batch = 5, .by_rounds = true});
  const auto live = workers(2);
  for (const int round : {0, 1, 2}) REQUIRE(book.grant(WorkerId(0), Iteration(round), live));
  book.skip_to(WorkerId(1), Iteration(2));
  const auto own = book.grant(WorkerId(1), Iteration(2), live);
  CHECK(own->begin == 25);
  CHECK(book.samples_leased() == 20);
  const auto next = book.grant(WorkerId(0), Iteration(3), live);
  CHECK(next->begin == 5);  // the share of round 0 that no worker trained
}

TEST_CASE("shares of stragglers in a closed round go back, requested or not") {
  LeaseBook book({.data_size = 40,
                  .total_samples = 40,
                  .batch = 5,
                  .by_rounds = true,
                  .round_size = RoundSize::all_but(2)});
  const auto live = workers(4);
  for (const std::uint32_t asking : {0u, 1u, 2u}) {
    const auto lease = book.grant(WorkerId(asking), Iteration(0), live);
    CHECK(lease->begin == 5 * asking);
    CHECK(lease->round_samples == 10);  // two pushes make a round
  }
  REQUIRE(book.grant(WorkerId(1), Iteration(1), live));
  CHECK(book.may_come_back(WorkerId(1)));
  const std::vector<LeaseBook::DroppedShare> late = {{WorkerId(2), {Epoch(0), 10, 15}},
                                                     {WorkerId(3), {Epoch(0), 15, 20}}};
  CHECK(book.close(Iteration(0), {WorkerId(0), WorkerId(1)}) == late);
  CHECK(book.samples_leased() == 30);
  // A closed round has no leases left, and a straggler cannot confirm its dropped share.
  CHECK_FALSE(book.grant(WorkerId(3), Iteration(0), live));
  CHECK(book.confirm(WorkerId(2), Clock(1)).empty());
  CHECK(book.confirm(WorkerId(1), Clock(1)) == std::vector<SampleRange>{{Epoch(0), 5, 10}});
  // These samples are leased first, to the contributors of the round.
  for (const WorkerId worker : live) REQUIRE(book.grant(worker, Iteration(1), live));
  CHECK(book.grant(WorkerId(0), Iteration(2), live)->begin == 10);
  CHECK(book.grant(WorkerId(1), Iteration(2), live)->begin == 15);
  for (const std::uint32_t empty : {2u, 3u}) {
    CHECK(book.grant(WorkerId(empty), Iteration(2), live)->begin ==
          book.grant(WorkerId(empty), Iteration(2), live)->end);
  }
}

TEST_CASE("the weights of a round shrink if more pushes have come than it needs") {
  LeaseBook book({.data_size = 40,
                  .total_samples = 40,
                  .batch = 5,
                  .by_rounds = true,
                  .round_size = RoundSize::at_least(2)});
  const auto live = workers(4);
  for (const WorkerId worker : live)
    CHECK(book.grant(worker, Iteration(0), live)->round_samples == 10);
  CHECK(book.suffice(Iteration(0), workers(2), live));
  CHECK(book.scale(Iteration(0), workers(2)) == 1);
  CHECK(book.scale(Iteration(0), workers(3)) == 2.0 / 3);
  CHECK(book.scale(Iteration(0), live) == 0.5);
}

namespace {

/// The sum of the weights of a closed round, and that of whole batches.
struct ClosedWeight {
  double sum = 0;
  double samples = 0;  // of the contributors
};

ClosedWeight closed_weight(LeaseBook& book, Iteration round, const std::vector<WorkerId>& live,
                           const std::vector<WorkerId>& contributors, double batch_or_0) {
  ClosedWeight weight;
  for (const WorkerId worker : live) {
    const auto lease = book.grant(worker, round, live);
    if (!lease || lease->begin == lease->end || !std::ranges::binary_search(contributors, worker))
      continue;
    const auto samples = static_cast<double>(lease->end - lease->begin);
    weight.samples += samples;
    weight.sum += (batch_or_0 > 0 ? batch_or_0 : samples) / lease->round_samples;
  }
  weight.sum *= book.scale(round, contributors);
  return weight;
}

}  // namespace

TEST_CASE("the weights of a closed round add up to the share of the batches that it needs") {
  Rng rng(5);
  for (int trial = 0; trial < 500; ++trial) {
    const std::uint32_t count = 2 + static_cast<std::uint32_t>(rng.below(7));
    const std::uint32_t needed = 1 + static_cast<std::uint32_t>(rng.below(count));
    const std::uint32_t batch = 2 + static_cast<std::uint32_t>(rng.below(30));
    const bool local = rng.one_in(3);
    const auto balance = std::make_shared<BySpeed>(batch);
    for (std::uint32_t worker = 0; worker < count; ++worker)
      balance->measured(WorkerId(worker),
                        {8, 800, 1 + static_cast<std::int64_t>(rng.below(4'000'000))});
    const auto size = static_cast<std::int64_t>(1 + rng.below(2 * count * batch));
    LeaseBook book({.data_size = size,
                    .total_samples = size,
                    .batch = batch,
                    .by_rounds = true,
                    .round_size = RoundSize::at_least(needed),
                    .equal_pushes = local},
                   rng.one_in(3) ? nullptr : balance);
    const auto live = workers(count);
    std::vector<WorkerId> contributors;
    for (const WorkerId worker : live)
      if (!rng.one_in(4)) contributors.push_back(worker);
    const auto weight = closed_weight(book, Iteration(0), live, contributors, local ? batch : 0);
    std::size_t shares = 0;
    for (const WorkerId worker : contributors)
      if (const auto lease = book.grant(worker, Iteration(0), live); lease->begin < lease->end)
        ++shares;
    const double counted = local ? static_cast<double>(shares * batch) : weight.samples;
    CAPTURE(count, needed, batch, size, local);
    CHECK(weight.sum == Approx(std::min(1.0, counted / (needed * batch))));
  }
}

TEST_CASE("a full round needs all workers except the spare ones, a short round all its shares") {
  LeaseBook book({.data_size = 30,
                  .total_samples = 30,
                  .batch = 5,
                  .by_rounds = true,
                  .round_size = RoundSize::all_but(3)});
  const auto live = workers(5);
  for (const int round : {0, 1})
    for (const WorkerId worker : live) REQUIRE(book.grant(worker, Iteration(round), live));
  const auto suffice = [&](int round, std::vector<std::uint32_t> contributors) {
    std::vector<WorkerId> ids;
    for (const std::uint32_t id : contributors) ids.push_back(WorkerId(id));
    return book.suffice(Iteration(round), ids, live);
  };
  CHECK_FALSE(suffice(0, {1}));
  CHECK(suffice(0, {1, 4}));
  book.close(Iteration(0), {WorkerId(1), WorkerId(4)});
  CHECK_FALSE(suffice(0, {0, 1, 2, 3, 4}));  // closed already
  // Worker 0 has the only share of round 1 with samples.
  CHECK_FALSE(suffice(1, {1, 2, 3, 4}));
  CHECK(suffice(1, {0}));
  book.close(Iteration(1), {WorkerId(0)});
  // Three shares came back; two of them make a round.
  for (const WorkerId worker : live) REQUIRE(book.grant(worker, Iteration(2), live));
  CHECK_FALSE(suffice(2, {0, 3, 4}));
  CHECK(suffice(2, {0, 1, 3}));
}

TEST_CASE("all samples may be leased while an open round can still return some") {
  LeaseBook book({.data_size = 10,
                  .total_samples = 10,
                  .batch = 5,
                  .by_rounds = true,
                  .round_size = RoundSize::all_but(1)});
  const auto live = workers(2);
  REQUIRE(book.grant(WorkerId(0), Iteration(0), live));
  CHECK_FALSE(book.grant(WorkerId(0), Iteration(1), live));
  CHECK(book.may_come_back(WorkerId(0)));
  book.close(Iteration(0), live);
  CHECK_FALSE(book.may_come_back(WorkerId(0)));
}

TEST_CASE("by rounds, a worker gets a lease only for its next round") {
  LeaseBook book({.data_size = 40, .total_samples = 40, .batch = 5, .by_rounds = true});
  const auto live = workers(2);
  REQUIRE(book.grant(WorkerId(0), Iteration(0), live));
  CHECK_FALSE(book.grant(WorkerId(1), Iteration(1), live));
  CHECK(book.grant(WorkerId(1), Iteration(0), live)->begin == 5);
}

TEST_CASE(
    "a limit of iterations that ends inside a round leaves its last workers without samples") {
  LeaseBook book(
      {.data_size = 40, .total_samples = 0, .total_iterations = 5, .batch = 4, .by_rounds = true});
  std::vector<std::int64_t> sizes;
  for (const int round : {0, 1}) {
    for (const WorkerId worker : workers(3)) {
      const auto lease = book.grant(worker, Iteration(round), workers(3));
      sizes.push_back(lease->end - lease->begin);
    }
  }
  CHECK(sizes == std::vector<std::int64_t>{4, 4, 4, 4, 4, 0});
  CHECK_FALSE(book.anything_to_lease());
}

namespace {

/// Ends worker 1 in the middle of a push of round 0. Returns the buckets that have its samples.
AppliedBuckets end_worker_1(LeaseBook& book) {
  PartialIterations partial;
  partial.add(0, ShardId(0), Clock(1), {}, 2);
  partial.add(0, ShardId(1), Clock(0), {}, 1);
  book.take_back(WorkerId(1), partial);
  return {{0, 0, 0}, {0, 0, 1}};
}

}  // namespace

TEST_CASE("a partial share of a round that is dropped or skipped keeps its list") {
  const LeaseBook::Limits limits = {.data_size = 40,
                                    .total_samples = 40,
                                    .batch = 5,
                                    .by_rounds = true,
                                    .round_size = RoundSize::all_but(1)};
  const auto live = workers(3);
  for (const bool closed : {true, false}) {
    LeaseBook book(limits);
    for (const WorkerId worker : live) REQUIRE(book.grant(worker, Iteration(0), live));
    book.close(Iteration(0), live);
    const auto list = end_worker_1(book);
    for (const WorkerId worker : {live[0], live[2]}) book.confirm(worker, Clock(1));
    REQUIRE(book.grant(WorkerId(1), Iteration(1), live)->begin == 15);
    REQUIRE(book.grant(WorkerId(2), Iteration(1), live)->begin == 20);
    // Worker 0 has the first share of round 1, requested or not.
    if (closed) {
      CHECK(book.grant(WorkerId(0), Iteration(1), live)->applied == list);
      const std::vector<LeaseBook::DroppedShare> dropped = {{WorkerId(0), {Epoch(0), 5, 10}}};
      CHECK(book.close(Iteration(1), {WorkerId(1), WorkerId(2)}) == dropped);
    } else {
      book.skip_to(WorkerId(0), Iteration(2));
    }
    // The share goes to the first worker of round 2: worker 1 if worker 0 straggles.
    const auto again = book.grant(WorkerId(closed ? 1 : 0), Iteration(2), live);
    CHECK(again->begin == 5);
    CHECK(again->applied == list);
  }
}

TEST_CASE("partial samples beyond a batch are divided into shares, each with the list") {
  const auto balance = std::make_shared<BySpeed>(4);
  LeaseBook book({.data_size = 40, .total_samples = 40, .batch = 4, .by_rounds = true}, balance);
  const auto measure = [&](std::uint32_t worker, std::int64_t ns) {
    balance->measured(WorkerId(worker), {8, 800, ns});
  };
  for (const std::uint32_t worker : {0u, 1u}) measure(worker, worker == 1 ? 1'000'000 : 4'000'000);
  const auto live = workers(2);
  REQUIRE(book.grant(WorkerId(0), Iteration(0), live));
  const auto large = book.grant(WorkerId(1), Iteration(0), live);
  REQUIRE(large->end - large->begin == 6);
  const auto list = end_worker_1(book);
  balance->forget(WorkerId(1));
  const auto first = book.grant(WorkerId(0), Iteration(1), live);
  const auto second = book.grant(WorkerId(1), Iteration(1), live);
  CHECK(first->begin == large->begin);
  CHECK(first->end == second->begin);
  CHECK(second->end == large->end);
  CHECK(first->applied == list);
  CHECK(second->applied == list);
}
