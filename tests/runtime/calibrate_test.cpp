#include "runtime/tools/calibrate.hpp"
#include "models/datasets/load.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "leeway.hpp"

namespace leeway {
namespace {

Plan small_plan() {
  Scenario scenario("small", "");
  scenario.data(clusters(3, 8, 300)).model({linear(3)}).optimizer(sgd(0.1)).shards(1).batch(8);
  return scenario.plan();
}

}  // namespace

TEST_CASE("calibrate writes the world of the machine, and the world can be simulated") {
  const auto path = std::filesystem::temp_directory_path() / "leeway-calibrate-test.toml";
  Plan plan = small_plan();
  plan.workers = 2;
  plan.stragglers = {slow(1, 50)};  // must not affect the measurement
  REQUIRE(calibrate(plan, path.string()) == 0);
  const auto world = world_from_file(path.string());
  REQUIRE(world);
  CHECK(world->nodes == plan::World::Nodes::one);
  CHECK(world->message_us > 0);
  CHECK(world->slice_us > 0);
  plan.simulated = *world;
  plan.stop = {.epochs = 1};
  const Result result = run(plan, {.quiet = true});
  CHECK(result.ok());
  CHECK(result.samples_trained == 300);
}

TEST_CASE("devices and files that calibrate does not support are refused") {
  using Catch::Matchers::Contains;
  Plan plan = small_plan();
  const auto data = load_data(plan.data, 1);
  REQUIRE(data);
  plan.device = "workers=cuda";
  CHECK_THAT(measure_world(plan, *data).error().text, Contains("give --device cpu"));
  CHECK(calibrate(small_plan(), "world.txt") == 2);
  CHECK(calibrate(plan, "world.toml") == 2);
}

}  // namespace leeway
