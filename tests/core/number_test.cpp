#include "core/number.hpp"

#include <catch2/catch.hpp>
#include <cstdint>

namespace leeway {
namespace {

TEST_CASE("a number is all of its text") {
  CHECK(parse_number<std::uint32_t>("17") == 17u);
  CHECK(parse_number<std::int64_t>("-3") == -3);
  CHECK(parse_number<double>("2.5e3") == 2500.0);
  for (const char* text : {"", " 1", "1 ", "+1", "1.0", "0x1", "one"})
    CHECK_FALSE(parse_number<std::int64_t>(text));
}

TEST_CASE("a number that its type cannot have is refused") {
  CHECK(parse_number<std::uint16_t>("65535") == 65535);
  CHECK_FALSE(parse_number<std::uint16_t>("65536"));
  CHECK_FALSE(parse_number<std::uint16_t>("-1"));
}

}  // namespace
}  // namespace leeway
