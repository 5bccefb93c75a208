#include "actors/worker/lease_queue.hpp"

#include <catch2/catch.hpp>
#include <utility>

using namespace leeway;

namespace {

using Positions = std::pair<std::int64_t, std::int64_t>;

/// Positions [begin, end) of epoch 2, four of them in each iteration.
msg::Lease queued_lease(std::int64_t first_iteration, std::int64_t begin, std::int64_t end) {
  msg::Lease lease;
  lease.epoch = Epoch(2);
  lease.begin = begin;
  lease.end = end;
  lease.first_iteration = Iteration(first_iteration);
  lease.batch = 4;
  lease.round_samples = 8;
  return lease;
}

/// The positions of the next iteration.
Positions take_positions(LeaseQueue& queue) {
  const LeasedIteration taken = queue.take();
  return {taken.begin, taken.end};
}

}  // namespace

TEST_CASE("a lease fills iterations of its batch, and the last one has the rest") {
  LeaseQueue queue;
  queue.begin(Iteration(3));
  CHECK_FALSE(queue.leased(Iteration(3)));
  msg::Lease lease = queued_lease(3, 10, 20);
  lease.applied = {{0, 1, 2}};
  REQUIRE(queue.take_in(lease));
  CHECK(queue.next() == Iteration(6));
  CHECK(queue.leased(Iteration(5)));
  CHECK_FALSE(queue.leased(Iteration(6)));
  const LeasedIteration first = queue.take();
  CHECK(first.epoch == Epoch(2));
  CHECK(first.begin == 10);
  CHECK(first.end == 14);
  CHECK(first.weight() == 0.5);
  CHECK(first.applied == lease.applied);
  CHECK(take_positions(queue) == Positions{14, 18});
  const LeasedIteration last = queue.take();
  CHECK(last.begin == 18);
  CHECK(last.samples() == 2);
  CHECK(last.weight() == 0.25);
  CHECK(last.applied == lease.applied);
}

TEST_CASE("only the last iteration of a lease flushes the residuals") {
  LeaseQueue queue;
  queue.begin(Iteration(3));
  msg::Lease lease = queued_lease(3, 10, 20);
  lease.flushes = true;
  REQUIRE(queue.take_in(lease));
  CHECK_FALSE(queue.take().flushes);
  CHECK_FALSE(queue.take().flushes);
  CHECK(queue.take().flushes);
}

TEST_CASE("leases are used in the order of their iterations, each from its begin") {
  LeaseQueue queue;
  queue.begin(Iteration(0));
  REQUIRE(queue.take_in(queued_lease(0, 40, 48)));
  CHECK(take_positions(queue) == Positions{40, 44});
  REQUIRE(queue.take_in(queued_lease(2, 8, 12)));
  REQUIRE(queue.take_in(queued_lease(3, 20, 20)));  // an iteration without samples
  REQUIRE(queue.take_in(queued_lease(4, 0, 4)));
  CHECK(queue.next() == Iteration(5));
  CHECK(take_positions(queue) == Positions{44, 48});
  CHECK(take_positions(queue) == Positions{8, 12});
  const LeasedIteration empty = queue.take();
  CHECK(empty.samples() == 0);
  CHECK(empty.weight() == 0);
  CHECK(take_positions(queue) == Positions{0, 4});
}

TEST_CASE("a repeated lease, and answers for other iterations, change nothing") {
  LeaseQueue queue;
  queue.begin(Iteration(0));
  REQUIRE(queue.take_in(queued_lease(0, 0, 8)));
  queue.ask();
  CHECK_FALSE(queue.take_in(queued_lease(0, 0, 8)));
  CHECK_FALSE(queue.take_in(queued_lease(3, 8, 16)));
  CHECK_FALSE(queue.take_in(msg::NoData{Iteration(0)}));
  CHECK(queue.next() == Iteration(2));
  CHECK(queue.asked() == Iteration(2));
  CHECK_FALSE(queue.no_data());
  CHECK(take_positions(queue) == Positions{0, 4});
  CHECK(take_positions(queue) == Positions{4, 8});
}

TEST_CASE("the next lease is requested one iteration ahead, and once until the answer") {
  LeaseQueue queue;
  queue.begin(Iteration(0));
  CHECK(queue.wants(Iteration(0)));
  queue.ask();
  CHECK(queue.asked() == Iteration(0));
  CHECK_FALSE(queue.wants(Iteration(0)));
  REQUIRE(queue.take_in(queued_lease(0, 0, 12)));
  CHECK_FALSE(queue.asked());
  CHECK_FALSE(queue.wants(Iteration(1)));
  CHECK(queue.wants(Iteration(2)));
  queue.ask();
  REQUIRE(queue.take_in(msg::NoData{Iteration(3)}));
  CHECK(queue.no_data());
  CHECK_FALSE(queue.asked());
  CHECK_FALSE(queue.wants(Iteration(3)));
  REQUIRE(queue.take_in(queued_lease(3, 12, 16)));  // samples that came back
  CHECK_FALSE(queue.no_data());
  CHECK(queue.wants(Iteration(3)));
}

TEST_CASE("a new session drops the leases, the open request and the lack of samples") {
  LeaseQueue queue;
  queue.begin(Iteration(0));
  REQUIRE(queue.take_in(queued_lease(0, 0, 8)));
  CHECK(take_positions(queue) == Positions{0, 4});
  queue.ask();
  queue.begin(Iteration(1));
  CHECK(queue.next() == Iteration(1));
  CHECK_FALSE(queue.asked());
  CHECK_FALSE(queue.leased(Iteration(1)));
  REQUIRE(queue.take_in(queued_lease(1, 32, 36)));
  CHECK(take_positions(queue) == Positions{32, 36});
  REQUIRE(queue.take_in(msg::NoData{Iteration(2)}));
  queue.begin(Iteration(2));
  CHECK_FALSE(queue.no_data());
  CHECK(queue.wants(Iteration(2)));
}

TEST_CASE("skipping closed rounds drops their leases, and a request for one of them") {
  LeaseQueue queue;
  queue.begin(Iteration(0));
  for (const std::int64_t round : {0, 1, 2})
    REQUIRE(queue.take_in(queued_lease(round, 8 * round, 8 * round + 4)));
  queue.ask();
  queue.skip_to(Iteration(2));
  CHECK(queue.next() == Iteration(3));
  CHECK(queue.asked() == Iteration(3));  // for a round that is still open
  CHECK(take_positions(queue) == Positions{16, 20});
  queue.skip_to(Iteration(5));
  CHECK(queue.next() == Iteration(5));
  CHECK_FALSE(queue.asked());
  REQUIRE(queue.take_in(msg::NoData{Iteration(5)}));
  queue.skip_to(Iteration(6));
  CHECK_FALSE(queue.no_data());
  CHECK(queue.wants(Iteration(6)));
}
