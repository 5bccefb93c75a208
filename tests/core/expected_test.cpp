#include "core/expected.hpp"

#include <catch2/catch.hpp>
#include <memory>

using namespace leeway;
using Catch::Contains;

namespace {

Expected<int> half(int number) {
  if (number % 2 != 0) return Error{"number: is odd; give an even one"};
  return number / 2;
}

}  // namespace

TEST_CASE("Expected holds a value or an error") {
  const auto four = half(8);
  REQUIRE(four);
  CHECK(four.has_value());
  CHECK(*four == 4);
  const auto none = half(7);
  REQUIRE_FALSE(none);
  CHECK(none.error().text == "number: is odd; give an even one");
}

TEST_CASE("reading a missing value throws CheckFailed with the text of the error") {
  CHECK_THROWS_AS(*half(7), CheckFailed);
  CHECK_THROWS_WITH(*half(7), Contains("number: is odd"));
  CHECK_THROWS_AS(half(8).error(), CheckFailed);
  CHECK_THROWS_AS(Status().error(), CheckFailed);
}

TEST_CASE("the value of an Expected can be moved out and changed in place") {
  Expected<std::unique_ptr<int>> owned(std::make_unique<int>(3));
  **owned = 5;
  CHECK(*owned->get() == 5);
  const std::unique_ptr<int> taken = *std::move(owned);
  CHECK(*taken == 5);
}

TEST_CASE("Expected<std::string> distinguishes a string from an error") {
  const Expected<std::string> text(std::string("fine"));
  REQUIRE(text);
  CHECK(text->size() == 4);
  const Expected<std::string> error(Error{"broken"});
  CHECK_FALSE(error);
}

TEST_CASE("a Status is success or an error") {
  const Status fine;
  CHECK(fine);
  const Status broken = Error{"broken"};
  CHECK_FALSE(broken);
  CHECK(broken.error().text == "broken");
}

TEST_CASE("a failed check names the file, the condition and the values") {
  const int clock = 3;
  CHECK_NOTHROW([&] { LW_CHECK(clock == 3, clock); }());
  CHECK_THROWS_WITH(
      [&] { LW_CHECK(clock > 4, clock, "of worker", 1); }(),
      Contains("expected_test.cpp:") && Contains("check failed: clock > 4 with 3, of worker, 1"));
  CHECK_THROWS_WITH([&] { LW_CHECK(clock > 4); }(), Contains("check failed: clock > 4"));
}
