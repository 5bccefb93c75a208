#include <rapidcheck/catch.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "policies/balance/by_speed.hpp"
#include "policies/balance/equal.hpp"
#include "tests/support/worker_ids.hpp"

using namespace leeway;
using leeway::test::workers;

namespace {

std::int64_t sum_of(const std::vector<std::uint32_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
}

/// `iterations` iterations of `samples` samples each, at `speed` samples per second.
WorkerPace pace(std::int64_t iterations, std::int64_t samples, std::int64_t speed) {
  return {iterations, iterations * samples, iterations * samples * 1'000'000'000 / speed};
}

/// The sizes in the last of `rounds` rounds of workers with these speeds.
std::vector<std::uint32_t> sizes_after(BySpeed& balance, const std::vector<std::int64_t>& speeds,
                                       int rounds = 50) {
  const auto live = workers(static_cast<std::uint32_t>(speeds.size()));
  std::vector<std::uint32_t> sizes;
  for (int round = 0; round < rounds; ++round) {
    sizes = balance.batches(live);
    for (std::size_t i = 0; i < speeds.size(); ++i)
      balance.measured(live[i], pace(1, sizes[i], speeds[i]));
  }
  return sizes;
}

std::vector<std::int64_t> any_speeds() {
  return *rc::gen::container<std::vector<std::int64_t>>(
      *rc::gen::inRange<std::size_t>(1, 40),
      rc::gen::oneOf(rc::gen::inRange<std::int64_t>(1, 1'000'000),
                     rc::gen::element<std::int64_t>(1, 1000, 1'000'000'000)));
}

}  // namespace

TEST_CASE("equal gives each worker the batch") {
  CHECK(Equal(64).batches(workers(3)) == std::vector<std::uint32_t>{64, 64, 64});
}

TEST_CASE("apportioned shares add up, stay within their limits, and grow with the weight") {
  rc::prop("any weights", [] {
    const auto weights = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::int64_t>>(
        rc::gen::oneOf(rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 30),
                       rc::gen::inRange<std::int64_t>(1, 20))));
    const auto count = static_cast<std::int64_t>(weights.size());
    const auto least = *rc::gen::inRange<std::int64_t>(1, 4);
    const auto most = least + *rc::gen::inRange<std::int64_t>(0, 100);
    const auto total = *rc::gen::inRange<std::int64_t>(count * least, count * most + 1);
    const auto shares = apportion(total, weights, least, most);
    RC_ASSERT(sum_of(shares) == total);
    for (std::size_t i = 0; i < shares.size(); ++i) {
      RC_ASSERT(shares[i] >= least);
      RC_ASSERT(shares[i] <= most);
      for (std::size_t j = 0; j < shares.size(); ++j)
        RC_ASSERT(weights[i] < weights[j] || shares[i] + (weights[i] == weights[j]) >= shares[j]);
    }
  });
  rc::prop("if no limit applies, each share is within one sample of its proportion", [] {
    const auto weights = *rc::gen::nonEmpty(
        rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(100, 200)));
    const auto total = 64 * static_cast<std::int64_t>(weights.size());
    const auto all = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
    const auto shares = apportion(total, weights, 1, 512);
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const std::int64_t off = std::int64_t{shares[i]} * all - total * weights[i];
      RC_ASSERT(std::abs(off) < all);
    }
  });
}

TEST_CASE("the sum of all batches stays the same for any speeds and any set of live workers") {
  rc::prop("any speeds", [](std::uint64_t seed) {
    const auto batch = *rc::gen::inRange<std::uint32_t>(1, 100);
    const auto speeds = any_speeds();
    BySpeed balance(batch);
    sizes_after(balance, speeds, *rc::gen::inRange(0, 12));
    auto live = workers(static_cast<std::uint32_t>(speeds.size()) + 2);  // two are new
    std::erase_if(live,
                  [&](WorkerId) { return (seed = seed * 6364136223846793005u + 1) >> 62 == 0; });
    const auto sizes = balance.batches(live);
    RC_ASSERT(sizes.size() == live.size());
    RC_ASSERT(sum_of(sizes) == static_cast<std::int64_t>(live.size() * batch));
    for (const auto size : sizes) {
      RC_ASSERT(size >= std::min(batch, 2u));
      RC_ASSERT(size <= 8 * batch);
    }
  });
}

TEST_CASE("a worker that is four times slower gets a quarter of the others' samples") {
  BySpeed balance(64);
  const auto sizes = sizes_after(balance, {4000, 4000, 4000, 1000});
  CHECK(sizes == std::vector<std::uint32_t>{79, 79, 79, 19});
}

TEST_CASE("workers whose speeds differ little keep the plan's batch") {
  BySpeed balance(64);
  for (int round = 0; round < 200; ++round) {
    const auto sizes = balance.batches(workers(3));
    REQUIRE(sizes == std::vector<std::uint32_t>{64, 64, 64});
    for (std::uint32_t i = 0; i < 3; ++i)
      balance.measured(WorkerId(i), pace(1, 64, 1000 + (round * 7 + i * 31) % 80));
  }
}

TEST_CASE("sizes stay while speeds change little, and follow when a worker slows down") {
  BySpeed balance(64);
  const auto before = sizes_after(balance, {4000, 2000});
  CHECK(before == std::vector<std::uint32_t>{85, 43});
  CHECK(sizes_after(balance, {4000, 2150}) == before);
  const auto after = sizes_after(balance, {1000, 2000}, 200);
  CHECK(after[0] < 50);
  CHECK(sum_of(after) == 128);
}

TEST_CASE("one slow iteration changes little") {
  BySpeed balance(64);
  sizes_after(balance, {1000, 1000});
  balance.measured(WorkerId(0), pace(1, 64, 500));
  CHECK(balance.batches(workers(2)) == std::vector<std::uint32_t>{64, 64});
}

TEST_CASE("a worker has the plan's batch until it is measured, and again after a restart") {
  BySpeed balance(64);
  const auto live = workers(3);
  for (std::uint32_t i = 0; i < 2; ++i)
    balance.measured(WorkerId(i), pace(10, 64, i == 0 ? 3000 : 1000));
  CHECK(balance.batches(live) == std::vector<std::uint32_t>{96, 32, 64});
  balance.measured(WorkerId(2), pace(10, 64, 2000));
  CHECK(balance.batches(live) == std::vector<std::uint32_t>{96, 32, 64});
  balance.forget(WorkerId(0));
  CHECK(balance.batches(live) == std::vector<std::uint32_t>{64, 43, 85});
}

TEST_CASE("a batch of one cannot be divided") {
  BySpeed balance(1);
  CHECK(sizes_after(balance, {9000, 1000, 1000}) == std::vector<std::uint32_t>{1, 1, 1});
}

TEST_CASE("no count or time that a message can carry overflows") {
  constexpr std::int64_t kHuge = (std::int64_t{1} << 62) - 1;
  BySpeed balance(1u << 20);
  const auto live = workers(3);
  for (int i = 0; i < 3; ++i) {
    balance.measured(WorkerId(0), {kHuge, kHuge, kHuge});
    balance.measured(WorkerId(1), {4, 1, kHuge});
    balance.measured(WorkerId(2), {4, kHuge, 0});
    CHECK(sum_of(balance.batches(live)) == 3 << 20);
  }
}
