#include "actors/shard/bound_table.hpp"

#include <rapidcheck/catch.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <vector>

using namespace leeway;

TEST_CASE("one bound holds for all iterations until another is announced") {
  const BoundTable table(3);
  for (const std::int64_t i : {0, 1, 1'000'000}) CHECK(table.of(Iteration(i)) == 3);
}

TEST_CASE("a lower bound holds beyond the iterations that have been answered") {
  BoundTable table(4);
  table.answered(Iteration(6));
  table.answered(Iteration(2));
  CHECK(table.announce(Iteration(3), 1) == Iteration(7));
  CHECK(table.of(Iteration(6)) == 4);
  CHECK(table.of(Iteration(7)) == 1);
  CHECK(table.announce(Iteration(10), 0) == Iteration(10));
  CHECK(table.of(Iteration(9)) == 1);
  CHECK(table.of(Iteration(10)) == 0);
}

TEST_CASE("a higher bound holds at once and replaces those announced for later iterations") {
  BoundTable table(2);
  table.answered(Iteration(4));
  table.announce(Iteration(20), 1);
  table.announce(Iteration(30), 0);
  CHECK(table.announce(Iteration(25), 3) == Iteration(5));
  CHECK(table.of(Iteration(4)) == 2);
  for (const std::int64_t i : {5, 19, 22, 30, 40}) CHECK(table.of(Iteration(i)) == 3);
}

TEST_CASE("a bound between two announced ones replaces the lower and ends the higher") {
  BoundTable table(9);
  table.announce(Iteration(10), 5);
  table.announce(Iteration(20), 1);
  CHECK(table.announce(Iteration(15), 3) == Iteration(15));
  CHECK(table.of(Iteration(14)) == 5);
  CHECK(table.of(Iteration(20)) == 3);
  CHECK(table.announce(Iteration(30), 5) == Iteration(10));
  CHECK(table.of(Iteration(9)) == 9);
  CHECK(table.of(Iteration(20)) == 5);
}

TEST_CASE("the table agrees with a list of the bounds of all iterations, and stays small") {
  rc::prop("any announcements", [] {
    constexpr std::int64_t kAll = 60;
    const auto initial = *rc::gen::inRange<std::int64_t>(0, 8);
    BoundTable table(initial);
    std::vector<std::int64_t> bounds(kAll, initial);
    std::int64_t unanswered = 0, least = 0;
    for (int step = *rc::gen::inRange(0, 60); step > 0; --step) {
      const auto iteration = *rc::gen::inRange<std::int64_t>(least, kAll);
      switch (*rc::gen::inRange(0, 4)) {
        case 0:
          if (iteration >= unanswered + 8) break;
          table.answered(Iteration(iteration));
          unanswered = std::max(unanswered, iteration + 1);
          break;
        case 1:
          if (iteration > unanswered) break;
          least = std::max(least, iteration);
          unanswered = std::max(unanswered, least);
          table.forget_below(Clock(least));
          break;
        default: {
          const auto bound = *rc::gen::inRange<std::int64_t>(0, 8);
          const auto from = table.announce(Iteration(iteration), bound).value();
          RC_ASSERT(from >= unanswered);
          for (std::int64_t i = unanswered; i < kAll; ++i) {
            auto& here = bounds[static_cast<std::size_t>(i)];
            here = i >= iteration ? bound : std::max(here, bound);
            RC_ASSERT(i < from || here == bound);
          }
        }
      }
      for (std::int64_t i = least; i < kAll; ++i)
        RC_ASSERT(table.of(Iteration(i)) == bounds[static_cast<std::size_t>(i)]);
      RC_ASSERT(table.size() <=
                static_cast<std::size_t>(std::max<std::int64_t>(unanswered - least, 0)) + 9);
    }
  });
}
