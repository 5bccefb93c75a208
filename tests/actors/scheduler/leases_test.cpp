// Leases: answered requests, waiting requests, and returned samples.
#include "actors/scheduler/leases.hpp"

#include <catch2/catch.hpp>

#include "tests/support/scheduler_parts.hpp"

namespace leeway::test {
TEST_CASE("requests are answered with leases, and with NoData when no samples are left") {
  SchedulerParts parts(workers_plan(1));
  parts.set_running({0});
  Iteration next;
  std::int64_t samples = 0;
  while (parts.request_lease(0, next)) {
    const auto lease = parts.out.take<msg::Lease>().at(0).body;
    const auto granted = parts.out.events<event::LeaseGranted>();
    REQUIRE(granted.size() == 1);
    CHECK(granted[0].iteration == next);
    CHECK((granted[0].begin == lease.begin && granted[0].end == lease.end));
    samples += lease.end - lease.begin;
    next = next + lease.iterations();
  }
  CHECK(samples == 2 * 60);
  CHECK(parts.out.receivers_of<msg::NoData>() == Workers{0});
}

TEST_CASE("a clock beyond all leases confirms only the leases") {
  SchedulerParts parts(workers_plan(1));
  parts.set_running({0});
  REQUIRE(parts.request_lease(0, Iteration(0)));
  const auto lease = parts.out.take<msg::Lease>().at(0).body;
  parts.leases.confirm(WorkerId(0), Clock(1'000'000), parts.out);
  CHECK(parts.member(0).clock == Clock(lease.iterations()));
  const auto trained = parts.out.events<event::Trained>();
  REQUIRE(trained.size() == 1);
  CHECK(trained[0].end == lease.end);
}

TEST_CASE("when a member is evicted, the untrained samples of its leases go back") {
  SchedulerParts parts(workers_plan(2));
  parts.set_running({0, 1});
  REQUIRE(parts.request_lease(0, Iteration(0)));
  const auto lease = parts.out.take<msg::Lease>().at(0).body;
  parts.leases.confirm(WorkerId(0), Clock(1), parts.out);
  const auto returned = parts.leases.take_back(WorkerId(0), {}, parts.out);
  CHECK(returned == static_cast<std::uint64_t>(lease.end - lease.begin - 2));
  const auto back = parts.out.events<event::LeaseReturned>();
  REQUIRE(back.size() == 1);
  CHECK((back[0].begin == 2 && back[0].end == lease.end));
  REQUIRE(parts.request_lease(1, Iteration(0)));
  CHECK(parts.out.take<msg::Lease>().at(0).body.begin == 2);
}

TEST_CASE("a request waits while samples may come back from an open round") {
  Plan plan = workers_plan(3, plan::Backup{1});
  plan.stop.epochs = 0.1;  // one round
  SchedulerParts parts(plan);
  parts.set_running({0, 1, 2});
  for (const std::uint32_t lead : {0u, 1u, 2u}) REQUIRE(parts.request_lease(lead, Iteration(0)));
  CHECK_FALSE(parts.request_lease(0, Iteration(1)));
  CHECK(parts.out.receivers_of<msg::NoData>().empty());
  CHECK(parts.leases.has_waiting());
  SECTION("a repeated request is kept once") {
    CHECK_FALSE(parts.request_lease(0, Iteration(1)));
    const auto waiting = parts.leases.take_waiting();
    CHECK(waiting.size() == 1);
    CHECK(waiting.at(WorkerId(0)).next == Iteration(1));
    CHECK_FALSE(parts.leases.has_waiting());
  }
  SECTION("its worker withdraws it") {
    parts.leases.withdraw(WorkerId(0));
    CHECK_FALSE(parts.leases.has_waiting());
  }
  SECTION("its worker is evicted") {
    parts.leases.take_back(WorkerId(0), {}, parts.out);
    CHECK_FALSE(parts.leases.has_waiting());
  }
}

}  // namespace leeway::test
