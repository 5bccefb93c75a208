#include "core/ids.hpp"

#include <catch2/catch.hpp>
#include <concepts>
#include <sstream>
#include <type_traits>

using namespace leeway;

namespace {

template <class A, class B>
concept Mixes = requires(A a, B b) {
  a == b;
}
|| requires(A a, B b) {
  a < b;
}
|| requires(A a, B b) {
  a - b;
}
|| requires(A a, B b) {
  a = b;
}
|| std::convertible_to<A, B> || std::convertible_to<B, A>;

template <class A>
concept Adds = requires(A a) {
  a + 1;
}
|| requires(A a) {
  ++a;
}
|| requires(A a) {
  a - a;
};

// The concept holds for a type and itself, so the checks below can fail.
static_assert(Mixes<WorkerId, WorkerId> && Mixes<Clock, Clock>);

// Different kinds do not mix.
static_assert(!Mixes<WorkerId, ShardId> && !Mixes<WorkerId, BlockId>);
static_assert(!Mixes<ShardId, BlockId> && !Mixes<WorkerId, Session>);
static_assert(!Mixes<LeaseId, View>);
static_assert(!Mixes<Iteration, Clock> && !Mixes<Iteration, Version>);
static_assert(!Mixes<Clock, Version> && !Mixes<Clock, Epoch> && !Mixes<Iteration, Epoch>);
static_assert(!Mixes<WorkerId, Iteration>);

// Conversions between integers and ids are explicit.
static_assert(!std::convertible_to<std::uint32_t, WorkerId>);
static_assert(!std::convertible_to<std::int64_t, Iteration>);
static_assert(!std::convertible_to<WorkerId, std::uint32_t>);
static_assert(!std::convertible_to<Iteration, std::int64_t>);
static_assert(std::constructible_from<WorkerId, std::uint32_t>);

// Only counts have arithmetic.
static_assert(!Adds<WorkerId> && !Adds<View>);
static_assert(Adds<Iteration> && Adds<Clock>);
static_assert(std::same_as<decltype(Clock(3) - Clock(1)), std::int64_t>);
static_assert(std::same_as<decltype(Iteration(3) + 1), Iteration>);

}  // namespace

TEST_CASE("ids compare and print like their numbers") {
  CHECK(WorkerId(2) == WorkerId(2));
  CHECK(WorkerId(2) < WorkerId(10));
  CHECK(View(1) != View(2));
  CHECK(WorkerId().value() == 0);
  std::ostringstream out;
  out << WorkerId(7) << ' ' << LeaseId(~std::uint64_t{0}) << ' ' << Clock(-1);
  CHECK(out.str() == "7 18446744073709551615 -1");
}

TEST_CASE("the difference of two counts is a signed number") {
  CHECK(Iteration(4) + 3 == Iteration(7));
  CHECK(Clock(1) - Clock(5) == -4);
  CHECK(Version(-1) < Version(0));
  Clock clock(9);
  CHECK(++clock == Clock(10));
  CHECK(clock.value() == 10);
}
