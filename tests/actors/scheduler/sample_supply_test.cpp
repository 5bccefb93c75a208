// SampleSupply: the order and the counts of samples.
#include "actors/scheduler/sample_supply.hpp"

#include <catch2/catch.hpp>

using namespace leeway;

namespace {

SampleRange range(std::int64_t epoch, std::int64_t begin, std::int64_t end) {
  return {Epoch(epoch), begin, end};
}

}  // namespace

TEST_CASE("fresh samples come in order, and no range crosses the end of an epoch") {
  SampleSupply supply({.data_size = 10, .total_samples = 25});
  CHECK(supply.take(8).samples == range(0, 0, 8));
  CHECK(supply.take(8).samples == range(0, 8, 10));
  CHECK(supply.epoch() == Epoch(1));
  CHECK(supply.take(10).samples == range(1, 0, 10));
  CHECK(supply.take(8).samples == range(2, 0, 5));
  CHECK_FALSE(supply.has_any());
  CHECK(supply.take(8).samples.count() == 0);
}

TEST_CASE("returned samples are taken first, with the buckets that have their gradients") {
  SampleSupply supply({.data_size = 100, .total_samples = 100});
  auto portion = supply.take(8);
  const auto lease = supply.lease(std::move(portion), {Iteration(0), 4, 8});
  const AppliedBuckets applied{{0, 1, 2}};
  CHECK(supply.give_back(lease, 4, 8, applied) == range(0, 4, 8));
  const auto again = supply.take(3);
  CHECK(again.samples == range(0, 4, 7));
  CHECK(again.applied == applied);
  // The rest of these samples is a separate range.
  const auto rest = supply.take(3);
  CHECK(rest.samples == range(0, 7, 8));
  CHECK(rest.applied == applied);
  CHECK(supply.take(3).applied.empty());
}

TEST_CASE("a round takes samples of one epoch only") {
  SampleSupply supply({.data_size = 10, .total_samples = 20});
  CHECK(supply.take(9).samples == range(0, 0, 9));
  CHECK(supply.take(5, Epoch(0)).samples == range(0, 9, 10));
  CHECK(supply.take(5, Epoch(0)).samples == range(0, 0, 0));
  CHECK(supply.take(5, Epoch(1)).samples == range(1, 0, 5));
}

TEST_CASE("leases count their samples and iterations until these are returned") {
  SampleSupply supply({.data_size = 100, .total_iterations = 3});
  const auto lease = supply.lease(supply.take(10), {Iteration(0), 4, 8});
  CHECK(lease.lease == LeaseId(1));
  CHECK(supply.samples_leased() == 10);
  CHECK(supply.iterations_left() == 0);  // the last iteration is short
  CHECK(supply.at_last_iteration());
  CHECK_FALSE(supply.has_any());
  supply.give_back(lease, 8, 10, {});
  CHECK(supply.samples_leased() == 8);
  CHECK(supply.iterations_left() == 1);
  CHECK(supply.has_any());
  // An empty share of a round does not count as an iteration.
  supply.lease({range(0, 0, 0), {}}, {Iteration(3), 4, 8});
  CHECK(supply.iterations_left() == 1);
}
