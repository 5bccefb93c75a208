#include "runtime/tools/calibrate.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "leeway.hpp"
#include "models/datasets/load.hpp"
#include "runtime/tools/calibration_age.hpp"

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
  CHECK(world->measured_peak > 0);
  CHECK_FALSE(world->measured_at.empty());
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

TEST_CASE("the model of a pipeline is calibrated as a whole") {
  Plan plan = small_plan();
  plan.model.push_back(plan::Linear{3});
  plan.pipeline.stages = 2;
  plan.workers = 4;
  const auto data = load_data(plan.data, 1);
  REQUIRE(data);
  CHECK(measure_world(plan, *data));
}

TEST_CASE("a calibration with another processor, peak or model is reported") {
  using Catch::Matchers::Contains;
  Plan plan = small_plan();
  const CalibrationOrigin here{"this processor", 80, "a digest"};
  plan::World world;
  CHECK(calibration_notes(world, here).empty());  // no calibration
  world.measured_on = here.processor;
  world.measured_at = "2026-11-28T12:00:00Z";
  world.measured_peak = 75;
  world.measured_model = here.model;
  CHECK(calibration_notes(world, here).empty());
  SECTION("a slower core") {
    world.measured_peak = 120;
    const auto notes = calibration_notes(world, here);
    REQUIRE(notes.size() == 1);
    CHECK_THAT(notes[0], Contains("the calibration of 2026-11-28T12:00:00Z is out of date") &&
                             Contains("reaches 80 GFLOP/s now, and reached 120 then"));
  }
  SECTION("another processor, whose peak is not compared") {
    world.measured_on = "another";
    world.measured_peak = 300;
    const auto notes = calibration_notes(world, here);
    REQUIRE(notes.size() == 1);
    CHECK_THAT(notes[0], Contains("a machine with another; this one has this processor"));
  }
  SECTION("another batch") {
    const Shape sample{8};
    note_origin(world, origin_of(plan, sample));
    Plan larger = plan;
    larger.batch = 16;
    CalibrationOrigin now = origin_of(larger, sample);
    now.gigaflops = world.measured_peak;
    const auto notes = calibration_notes(world, now);
    REQUIRE(notes.size() == 1);
    CHECK_THAT(notes[0], Contains("another model, batch or precision"));
    larger.batch = plan.batch;
    larger.workers = 7;  // does not matter
    now.model = origin_of(larger, sample).model;
    CHECK(calibration_notes(world, now).empty());
    now.model = origin_of(plan, Shape{4}).model;
    CHECK(calibration_notes(world, now).size() == 1);
  }
}

}  // namespace leeway
