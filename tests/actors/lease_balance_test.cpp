// LeaseBook with iterations of unequal size.
#include <catch2/catch.hpp>

#include "actors/scheduler/lease_book.hpp"
#include "policies/balance/by_speed.hpp"

using namespace leeway;

TEST_CASE(
    "with balance by speed, shares of a round differ, and leases take each worker equally long") {
  const auto balance = std::make_shared<BySpeed>(16);
  for (const std::uint32_t worker : {0u, 1u, 2u})
    balance->measured(WorkerId(worker), {8, 800, worker == 2 ? 4'000'000 : 1'000'000});
  const std::vector<WorkerId> live = {WorkerId(0), WorkerId(1), WorkerId(2)};
  LeaseBook rounds({.data_size = 100, .total_samples = 100, .batch = 16, .by_rounds = true},
                   balance);
  std::vector<std::int64_t> sizes;
  for (const int round : {0, 1, 2})
    for (const WorkerId worker : live) {
      const auto lease = rounds.grant(worker, Iteration(round), live);
      CHECK(lease->round_samples == 48);
      sizes.push_back(lease->end - lease->begin);
    }
  CHECK(sizes == std::vector<std::int64_t>{22, 21, 5, 22, 21, 5, 4, 0, 0});
  LeaseBook on_request({.data_size = 1000, .batch = 16, .lease_size = 64}, balance);
  const auto fast = on_request.grant(WorkerId(0), Iteration(0), live);
  const auto slow = on_request.grant(WorkerId(2), Iteration(0), live);
  CHECK(fast->batch == 22);
  CHECK(fast->iterations() == 4);
  CHECK(slow->batch == 5);
  CHECK(slow->iterations() == 4);
}
