#include "cli/lists.hpp"

#include <rapidcheck/catch.h>

#include "core/text.hpp"

using namespace leeway;
using namespace leeway::cli;
using Catch::Contains;
using Figures = std::vector<std::int64_t>;

TEST_CASE("speeds are read as exact thousandths") {
  CHECK(*parse_speeds("1,2,0.5") == Figures{1000, 2000, 500});
  CHECK(*parse_speeds("0.001,1000000,1.25") == Figures{1, 1'000'000'000, 1250});
  for (const char* wrong : {"", "1,,2", "0", "-1", "1.0001", "1.", "two", "1 ", "1e3", "1000001",
                            "0x1", "1,2,", ".5", "99999999999999999999"}) {
    const auto speeds = parse_speeds(wrong);
    INFO(wrong);
    REQUIRE_FALSE(speeds);
    CHECK_THAT(speeds.error().text, Contains("is not a speed") && Contains("--speeds 1,2,0.5"));
  }
  rc::prop("any thousandth", [] {
    const auto value = *rc::gen::inRange<std::int64_t>(1, 1'000'000'001);
    const std::string digits = concat(1000 + value % 1000).substr(1);
    RC_ASSERT(*parse_speeds(concat(value / 1000, '.', digits)) == Figures{value});
  });
}

TEST_CASE("sizes are read in bytes, with decimal and binary units") {
  CHECK(*parse_sizes("512MB,2GiB,1000") == Figures{512'000'000, std::int64_t{2} << 30, 1000});
  CHECK(*parse_sizes("1.5kB,0.25KiB,3B,1GB,2MiB,0") ==
        Figures{1500, 256, 3, 1'000'000'000, 2 << 20, 0});
  CHECK(*parse_sizes("1152921504606846976") == Figures{std::int64_t{1} << 60});
  for (const char* wrong : {"", "MB", "1 MB", "1mb", "-1", "1,,2", "1TBx", "99999999999GB",
                            "1152921504606846977", "1.5.5kB"}) {
    const auto sizes = parse_sizes(wrong);
    INFO(wrong);
    REQUIRE_FALSE(sizes);
    CHECK_THAT(sizes.error().text, Contains("is not a size") && Contains("512MB,2GiB"));
  }
}
