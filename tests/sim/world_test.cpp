#include <catch2/catch.hpp>

#include "sim/world.hpp"

namespace leeway::sim {
namespace {

std::string refusal(const std::string& text) {
  const auto world = parse_world(text);
  return world ? "" : world.error().text;
}

}  // namespace

TEST_CASE("a world is read setting by setting, and the rest keeps its default") {
  const auto read =
      parse_world("nodes=one,cores=2,speed=100,memory=40,noise=10%,latency=1.5ms,jitter=0,link=1");
  REQUIRE(read);
  const World world(*read);
  CHECK(world.nodes == World::Nodes::one);
  CHECK(world.cores == 2);
  CHECK(world.flops_per_second == 100e9);
  CHECK(world.bytes_per_second == 40e9);
  CHECK(world.noise == Approx(0.1));
  CHECK(world.latency == microseconds(1500));
  CHECK(world.jitter == 0);
  CHECK(world.link_bytes_per_second == 125e6);
  CHECK(world.detection == World{}.detection);
  CHECK(world.local_latency == World{}.local_latency);
}

TEST_CASE("units of time are nanoseconds to seconds") {
  CHECK(World(*parse_world("latency=3ns")).latency == nanoseconds(3));
  CHECK(World(*parse_world("latency=3us")).latency == microseconds(3));
  CHECK(World(*parse_world("detection=3ms")).detection == milliseconds(3));
  CHECK(World(*parse_world("detection=3s")).detection == seconds(3));
}

TEST_CASE("what makes no world is refused, with what would be right") {
  using Catch::Matchers::Contains;
  CHECK_THAT(refusal(""), Contains("name=value"));
  CHECK_THAT(refusal("latency"), Contains("name=value"));
  CHECK_THAT(refusal("latncy=1ms"), Contains("latency"));
  CHECK_THAT(refusal("latency=1"), Contains("a time, such as 50us"));
  CHECK_THAT(refusal("latency=-1ms"), Contains("latency: \"-1ms\" is not right"));
  CHECK_THAT(refusal("latency=1e300s"), Contains("is not right"));
  CHECK_THAT(refusal("latency=nans"), Contains("is not right"));
  CHECK_THAT(refusal("cores=0"), Contains("1 to 4096"));
  CHECK_THAT(refusal("cores=1.5"), Contains("1 to 4096"));
  CHECK_THAT(refusal("speed=0"), Contains("above 0"));
  CHECK_THAT(refusal("noise=100%"), Contains("below 1"));
  CHECK_THAT(refusal("nodes=two"), Contains("each"));
  CHECK_THAT(refusal("link=fast"), Contains("Gbit/s"));
  CHECK_THAT(refusal("cores=2,"), Contains("name=value"));
  CHECK(refusal("link=0") == "");
}

}  // namespace leeway::sim
