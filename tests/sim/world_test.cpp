#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "core/text.hpp"
#include "plan/plan.hpp"
#include "sim/world.hpp"

namespace leeway::sim {
namespace {

std::string refusal(const std::string& text) {
  const auto world = parse_world(text);
  return world ? "" : world.error().text;
}

}  // namespace

TEST_CASE("settings of a world are parsed, and the others keep their defaults") {
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

TEST_CASE("units of time are ns, us, ms and s") {
  CHECK(World(*parse_world("latency=3ns")).latency == nanoseconds(3));
  CHECK(World(*parse_world("latency=3us")).latency == microseconds(3));
  CHECK(World(*parse_world("detection=3ms")).detection == milliseconds(3));
  CHECK(World(*parse_world("detection=3s")).detection == seconds(3));
}

TEST_CASE("invalid settings are refused with the valid values") {
  using Catch::Matchers::Contains;
  CHECK_THAT(refusal(""), Contains("name=value"));
  CHECK_THAT(refusal("latency"), Contains("name=value"));
  CHECK_THAT(refusal("latncy=1ms"), Contains("latency"));
  CHECK_THAT(refusal("latency=1"), Contains("a time, such as 50us"));
  CHECK_THAT(refusal("latency=-1ms"), Contains("latency: \"-1ms\" is invalid"));
  CHECK_THAT(refusal("latency=1e300s"), Contains("is invalid"));
  CHECK_THAT(refusal("latency=nans"), Contains("is invalid"));
  CHECK_THAT(refusal("cores=0"), Contains("1 to 4096"));
  CHECK_THAT(refusal("cores=1.5"), Contains("1 to 4096"));
  CHECK_THAT(refusal("speed=0"), Contains("above 0"));
  CHECK_THAT(refusal("noise=100%"), Contains("below 1"));
  CHECK_THAT(refusal("nodes=two"), Contains("each"));
  CHECK(World(*parse_world("nodes=pairs")).nodes == World::Nodes::pairs);
  CHECK_THAT(refusal("link=fast"), Contains("Gbit/s"));
  CHECK_THAT(refusal("cores=2,"), Contains("name=value"));
  CHECK(refusal("link=0") == "");
}

namespace {

/// Writes a world file to the folder for temporary files, and returns its path.
std::string file_of(const std::string& text) {
  const auto path = std::filesystem::temp_directory_path() / "leeway-world-test.toml";
  std::ofstream(path) << text;
  return path.string();
}

}  // namespace

TEST_CASE("a world is read from a file, and later settings override it") {
  const auto path = file_of("nodes = \"one\"\ncores = 8\nmessage_us = 2.5\nlatency_us = 70\n");
  const auto read =
      parse_world(concat("@", path, ",latency=1ms,contention=10%,cold=40%,slice=3ms,timer=50us"));
  REQUIRE(read);
  CHECK(*read == plan::World{.nodes = plan::World::Nodes::one,
                             .cores = 8,
                             .latency_us = 1000,
                             .message_us = 2.5,
                             .timer_us = 50,
                             .slice_us = 3000,
                             .contention = 0.1,
                             .cold = 0.4});
  CHECK(World(*read).message == nanoseconds(2500));
}

TEST_CASE("a written world is read back") {
  plan::World world{.nodes = plan::World::Nodes::one,
                    .cores = 3,
                    .speed = 61.25,
                    .memory = 7.5,
                    .noise = 0.25,
                    .latency_us = 12.5,
                    .local_latency_us = 1.5,
                    .jitter = 0.5,
                    .link = 2.5,
                    .detection_ms = 150,
                    .message_us = 3.25,
                    .timer_us = 70.5,
                    .slice_us = 1400,
                    .contention = 0.125,
                    .cold = 0.375};
  world.cost_only = true;
  const auto read = parse_world(concat("@", file_of(to_toml(world))));
  REQUIRE(read);
  CHECK(*read == world);
}

TEST_CASE("an invalid world file is refused with the line and the valid values") {
  using Catch::Matchers::Contains;
  const auto refused = [](const std::string& text) { return refusal(concat("@", file_of(text))); };
  CHECK_THAT(refused("cores = 2\nspeed = \"fast\"\n"),
             Contains("leeway-world-test.toml:2") && Contains("speed") && Contains("number"));
  CHECK_THAT(refused("message_us = -1\n"),
             Contains("message_us: -1 is not allowed; give 0 to 1e8 microseconds"));
  CHECK_THAT(refused("contention = -0.5\n"), Contains("contention: -0.5 is not allowed"));
  CHECK_THAT(refused("cores = 0\n"), Contains("cores: 0 is not allowed; give 1 to 4096"));
  CHECK_THAT(refused("mesage_us = 1\n"), Contains("mesage_us") && Contains("message_us"));
  CHECK_THAT(refused("speed = \n"), Contains("leeway-world-test.toml:1"));
  CHECK_THAT(refusal("@nowhere.toml"), Contains("cannot be read") && Contains("check the path"));
  CHECK_THAT(refusal("@world.txt"), Contains("ends in .toml or .json"));
  CHECK_THAT(refusal("latency=1ms,@world.toml"), Contains("is not a setting"));
}

}  // namespace leeway::sim
