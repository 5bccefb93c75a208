// LeaseBook by rounds: short rounds, late starts, and rounds that are closed early.
#include <catch2/catch.hpp>

#include "actors/scheduler/lease_book.hpp"
#include "policies/balance/by_speed.hpp"

using namespace leeway;

namespace {

std::vector<WorkerId> workers(std::uint32_t count) {
  std::vector<WorkerId> ids;
  for (std::uint32_t i = 0; i < count; ++i) ids.push_back(WorkerId(i));
  return ids;
}

}  // namespace

TEST_CASE("a round is cut in worker order, and the short last one leaves the last with nothing") {
  LeaseBook book({.data_size = 96, .total_samples = 96, .batch = 64, .by_rounds = true});
  const auto live = workers(4);
  std::vector<std::int64_t> sizes;
  for (const std::uint32_t asking : {3u, 1u, 0u, 2u})
    book.grant(WorkerId(asking), Iteration(0), live);
  for (const WorkerId worker : live) {
    const auto lease = book.grant(worker, Iteration(0), live);  // what it was told before
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

TEST_CASE("a worker that starts later gives back its parts of earlier rounds") {
  LeaseBook book({.data_size = 40, .total_samples = 40, .batch = 5, .by_rounds = true});
  const auto live = workers(2);
  for (const int round : {0, 1, 2}) REQUIRE(book.grant(WorkerId(0), Iteration(round), live));
  book.skip_to(WorkerId(1), Iteration(2));
  const auto part = book.grant(WorkerId(1), Iteration(2), live);
  CHECK(part->begin == 25);
  CHECK(book.samples_leased() == 20);
  const auto next = book.grant(WorkerId(0), Iteration(3), live);
  CHECK(next->begin == 5);  // the part of round 0 that nobody trained
}

TEST_CASE("a closed round gives the parts of those who were late back, asked for or not") {
  LeaseBook book({.data_size = 40, .total_samples = 40, .batch = 5, .by_rounds = true, .spare = 2});
  const auto live = workers(4);
  for (const std::uint32_t asking : {0u, 1u, 2u}) {
    const auto lease = book.grant(WorkerId(asking), Iteration(0), live);
    CHECK(lease->begin == 5 * asking);
    CHECK(lease->round_samples == 10);  // of the two that make a round
  }
  REQUIRE(book.grant(WorkerId(1), Iteration(1), live));
  CHECK(book.may_come_back(WorkerId(1)));
  const std::vector<LeaseBook::DroppedShare> late = {{WorkerId(2), {Epoch(0), 10, 15}},
                                                     {WorkerId(3), {Epoch(0), 15, 20}}};
  CHECK(book.close(Iteration(0), {WorkerId(0), WorkerId(1)}) == late);
  CHECK(book.samples_leased() == 30);
  // Of a closed round there is nothing to be had, and nothing to confirm for who was late.
  CHECK_FALSE(book.grant(WorkerId(3), Iteration(0), live));
  CHECK(book.confirm(WorkerId(2), Clock(1)).empty());
  CHECK(book.confirm(WorkerId(1), Clock(1)) == std::vector<SampleRange>{{Epoch(0), 5, 10}});
  // They are leased first of all, and to those who were in time.
  for (const WorkerId worker : live) REQUIRE(book.grant(worker, Iteration(1), live));
  CHECK(book.grant(WorkerId(0), Iteration(2), live)->begin == 10);
  CHECK(book.grant(WorkerId(1), Iteration(2), live)->begin == 15);
  for (const std::uint32_t empty : {2u, 3u}) {
    CHECK(book.grant(WorkerId(empty), Iteration(2), live)->begin ==
          book.grant(WorkerId(empty), Iteration(2), live)->end);
  }
}

TEST_CASE("a full round needs all but the spare workers, and a short one all of its parts") {
  LeaseBook book({.data_size = 30, .total_samples = 30, .batch = 5, .by_rounds = true, .spare = 3});
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
  // Of round 1, worker 0 has the only part with samples.
  CHECK_FALSE(suffice(1, {1, 2, 3, 4}));
  CHECK(suffice(1, {0}));
  book.close(Iteration(1), {WorkerId(0)});
  // What came back: three parts; two make a round.
  for (const WorkerId worker : live) REQUIRE(book.grant(worker, Iteration(2), live));
  CHECK_FALSE(suffice(2, {0, 3, 4}));
  CHECK(suffice(2, {0, 1, 3}));
}

TEST_CASE("samples may come back as long as others hold them in a round that is open") {
  LeaseBook book({.data_size = 10, .total_samples = 10, .batch = 5, .by_rounds = true, .spare = 1});
  const auto live = workers(2);
  REQUIRE(book.grant(WorkerId(0), Iteration(0), live));
  CHECK_FALSE(book.grant(WorkerId(0), Iteration(1), live));
  CHECK(book.may_come_back(WorkerId(0)));
  book.close(Iteration(0), live);
  CHECK_FALSE(book.may_come_back(WorkerId(0)));
}

TEST_CASE("by rounds, a worker that asks for another round than its next gets nothing") {
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

/// The parts that have the samples of worker 1's part of round 0, which has ended.
AppliedBuckets tear(LeaseBook& book) {
  PartialIterations partial;
  partial.add(0, ShardId(0), Clock(1), {}, 2);
  partial.add(0, ShardId(1), Clock(0), {}, 1);
  book.take_back(WorkerId(1), partial);
  return {{0, 0, 0}, {0, 0, 1}};
}

}  // namespace

TEST_CASE("a partial part of a round that comes too late, or is skipped, keeps its list") {
  const LeaseBook::Limits limits = {
      .data_size = 40, .total_samples = 40, .batch = 5, .by_rounds = true, .spare = 1};
  const auto live = workers(3);
  for (const bool closed : {true, false}) {
    LeaseBook book(limits);
    for (const WorkerId worker : live) REQUIRE(book.grant(worker, Iteration(0), live));
    book.close(Iteration(0), live);
    const auto list = tear(book);
    for (const WorkerId worker : {live[0], live[2]}) book.confirm(worker, Clock(1));
    REQUIRE(book.grant(WorkerId(1), Iteration(1), live)->begin == 15);
    REQUIRE(book.grant(WorkerId(2), Iteration(1), live)->begin == 20);
    // The first part of round 1, which worker 0 has asked for or not.
    if (closed) {
      CHECK(book.grant(WorkerId(0), Iteration(1), live)->applied == list);
      const std::vector<LeaseBook::DroppedShare> late = {{WorkerId(0), {Epoch(0), 5, 10}}};
      CHECK(book.close(Iteration(1), {WorkerId(1), WorkerId(2)}) == late);
    } else {
      book.skip_to(WorkerId(0), Iteration(2));
    }
    // Nobody is late, or worker 0 is, and comes last.
    const auto again = book.grant(WorkerId(closed ? 1 : 0), Iteration(2), live);
    CHECK(again->begin == 5);
    CHECK(again->applied == list);
  }
}

TEST_CASE("a partial part of a round that is larger than a batch is shared out, with its list") {
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
  const auto list = tear(book);
  balance->forget(WorkerId(1));
  const auto first = book.grant(WorkerId(0), Iteration(1), live);
  const auto second = book.grant(WorkerId(1), Iteration(1), live);
  CHECK(first->begin == large->begin);
  CHECK(first->end == second->begin);
  CHECK(second->end == large->end);
  CHECK(first->applied == list);
  CHECK(second->applied == list);
}
