// SnapshotProposals: when an evaluation is due, and at which iteration.
#include "actors/scheduler/snapshot_proposals.hpp"

#include <catch2/catch.hpp>

#include "tests/support/scheduler_parts.hpp"

namespace leeway::test {
namespace {

/// 60 samples per epoch, a lease size of 2, an evaluation every 12 samples.
struct Evaluated : SchedulerParts {
  Evaluated() : SchedulerParts(plan()) { set_running({0}); }
  static Plan plan() {
    Plan plan = workers_plan(2);
    plan.lease_size = 2;
    plan.evaluate_every = 0.2;
    return plan;
  }
  void leases_iterations(int count) {
    for (int i = 0; i < count; ++i, next = next + 1) {
      REQUIRE(request_lease(0, next));
      snapshots.start_if_due(out);
    }
    out.take<msg::Lease>();
  }
  void votes(std::uint64_t snapshot, bool accepted) { snapshots.voted({snapshot, accepted}, out); }
  Iteration next;
};

}  // namespace

TEST_CASE("a snapshot is proposed beyond all leases when enough samples are leased") {
  Evaluated parts;
  parts.leases_iterations(5);
  CHECK(parts.out.has_sent_nothing());
  parts.leases_iterations(1);
  const auto proposed = parts.out.take<msg::Snapshot>();
  REQUIRE(proposed.size() == 2);  // to each shard
  CHECK(proposed[0].body.iterations == std::vector{Iteration(6), Iteration(0)});
  CHECK_FALSE(proposed[0].body.immediate);
}

TEST_CASE("no evaluation starts while one is in flight") {
  Evaluated parts;
  parts.leases_iterations(6);
  const auto first = parts.out.take<msg::Snapshot>().at(0).body.snapshot;
  parts.leases_iterations(6);
  CHECK(parts.out.has_sent_nothing());
  parts.snapshots.evaluated(first + 1);  // not the one in flight
  parts.leases_iterations(6);
  CHECK(parts.out.has_sent_nothing());
  parts.snapshots.evaluated(first);
  parts.leases_iterations(6);
  CHECK(parts.out.take<msg::Snapshot>().at(0).body.snapshot == first + 1);
}

TEST_CASE("if a shard refuses a snapshot, it is proposed again beyond the leases of then") {
  Evaluated parts;
  parts.leases_iterations(6);
  const auto id = parts.out.take<msg::Snapshot>().at(0).body.snapshot;
  parts.leases_iterations(2);
  parts.votes(id, false);
  CHECK(parts.out.has_sent_nothing());
  parts.votes(id, true);
  const auto again = parts.out.take<msg::Snapshot>();
  REQUIRE(again.size() == 2);
  CHECK(again[0].body.snapshot == id + 1);
  CHECK(again[0].body.iterations == std::vector{Iteration(8), Iteration(0)});
  // Votes for the earlier proposal are ignored.
  for (int i = 0; i < 4; ++i) parts.votes(id, false);
  CHECK(parts.out.has_sent_nothing());
}

TEST_CASE("by rounds, a snapshot ends at the same round for all workers") {
  Plan plan = Evaluated::plan();
  plan.consistency = plan::Bsp{};
  SchedulerParts parts(plan);
  parts.set_running({0, 1});
  for (int i = 0; i < 3; ++i) {
    parts.request_lease(0, Iteration(i));
    parts.request_lease(1, Iteration(i));
  }
  parts.out.take<msg::Lease>();
  parts.snapshots.start_if_due(parts.out);
  CHECK(parts.out.take<msg::Snapshot>().at(0).body.iterations ==
        std::vector{Iteration(3), Iteration(3)});
}

TEST_CASE("the snapshot of a worker that was evicted ends at its clock") {
  Evaluated parts;
  parts.leases_iterations(6);
  const auto id = parts.out.take<msg::Snapshot>().at(0).body.snapshot;
  parts.leases.confirm(WorkerId(0), Clock(4), parts.out);
  parts.leases.take_back(WorkerId(0), {}, parts.out);
  parts.votes(id, false);
  parts.votes(id, true);
  CHECK(parts.out.take<msg::Snapshot>().at(0).body.iterations ==
        std::vector{Iteration(4), Iteration(0)});
}

TEST_CASE("a proposal that all shards accept is not repeated") {
  Evaluated parts;
  parts.leases_iterations(6);
  const auto id = parts.out.take<msg::Snapshot>().at(0).body.snapshot;
  for (int i = 0; i < 4; ++i) parts.votes(id, true);
  CHECK(parts.out.has_sent_nothing());
}

TEST_CASE("a vote that arrives when the run stops proposes nothing") {
  Evaluated parts;
  parts.leases_iterations(6);
  const auto proposed = parts.out.take<msg::Snapshot>().at(0).body.snapshot;
  parts.votes(proposed, false);
  parts.snapshots.abandon();
  parts.votes(proposed, true);
  CHECK(parts.out.has_sent_nothing());
}

TEST_CASE("without a bound, shards take their snapshots at once") {
  Plan plan = Evaluated::plan();
  plan.consistency = plan::Asp{};
  SchedulerParts parts(plan);
  parts.set_running({0});
  for (int i = 0; i < 6; ++i) parts.request_lease(0, Iteration(i));
  parts.snapshots.start_if_due(parts.out);
  CHECK(parts.out.take<msg::Snapshot>().at(0).body.immediate);
}

TEST_CASE("no snapshot is proposed when the last samples are leased: the end has its own") {
  Evaluated parts;
  for (int i = 0; parts.leases.book().anything_to_lease(); ++i)
    parts.request_lease(0, Iteration(i));
  parts.snapshots.start_if_due(parts.out);
  CHECK(parts.out.take<msg::Snapshot>().empty());
}

}  // namespace leeway::test
