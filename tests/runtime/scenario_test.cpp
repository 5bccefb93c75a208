// Scenarios: runs, their results, and errors before a run starts.
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "core/text.hpp"
#include "leeway.hpp"
#include "models/datasets/load.hpp"
#include "models/safetensors.hpp"
#include "tests/support/process.hpp"

namespace leeway::test {
namespace {

Scenario small() {
  Scenario scenario("small", "A small task.");
  scenario.data(clusters(3, 4, 600))
      .model({linear(8), relu(), linear(3)})
      .optimizer(sgd(0.1))
      .workers(2)
      .shards(1)
      .batch(10)
      .epochs(2);
  return scenario;
}

/// A custom layer that multiplies by a constant.
class Scale final : public Layer {
 public:
  explicit Scale(float factor) : factor_(factor) {}
  std::string_view kind() const override { return "scale"; }
  Expected<Shape> set_input(const Shape& input) override {
    size_ = input.count();
    return input;
  }
  void forward(const ForwardArgs& args) const override {
    for (std::int64_t i = 0; i < args.batch * size_; ++i) args.y[i] = factor_ * args.x[i];
  }
  void backward(const BackwardArgs& args) const override {
    for (std::int64_t i = 0; args.dx && i < args.batch * size_; ++i)
      args.dx[i] = factor_ * args.dy[i];
  }

 private:
  float factor_;
  std::int64_t size_ = 0;
};

/// A layer that throws in its tenth forward.
class FailingLayer final : public Layer {
 public:
  std::string_view kind() const override { return "failing"; }
  Expected<Shape> set_input(const Shape& input) override {
    size_ = input.count();
    return input;
  }
  void forward(const ForwardArgs& args) const override {
    if (args.training && ++calls_ == 10) throw std::runtime_error("the tenth forward failed");
    std::copy_n(args.x, args.batch * size_, args.y);
  }
  void backward(const BackwardArgs& args) const override {
    if (args.dx) std::copy_n(args.dy, args.batch * size_, args.dx);
  }

 private:
  mutable std::atomic<int> calls_{0};
  std::int64_t size_ = 0;
};

}  // namespace

TEST_CASE("a scenario runs and returns its result") {
  const Result result = run(small().plan(), {.quiet = true});
  REQUIRE(result.ok());
  CHECK(result.samples_trained == 1200);
  CHECK(result.iterations == 120);
  CHECK(result.test_accuracy > 0.9);
  CHECK(result.weight("0.weight").size() == 8 * 4);
  CHECK(result.weight("2.bias").size() == 3);
  CHECK_THROWS_AS(result.weight("1.weight"), CheckFailed);
}

TEST_CASE("a custom layer trains like a built-in layer") {
  register_layer("scale", [](const std::string& arguments) -> Expected<std::unique_ptr<Layer>> {
    return std::unique_ptr<Layer>(std::make_unique<Scale>(std::stof(arguments)));
  });
  Scenario scenario = small();
  scenario.model({linear(8), relu(), custom("scale", "0.5"), linear(3)});
  const Result result = run(scenario.plan(), {.quiet = true});
  REQUIRE(result.ok());
  CHECK(result.test_accuracy > 0.9);
  CHECK(result.weight("3.weight").size() == 3 * 8);
}

TEST_CASE("a layer that throws ends its worker, and the others train every sample") {
  register_layer("failing", [](const std::string&) -> Expected<std::unique_ptr<Layer>> {
    return std::unique_ptr<Layer>(std::make_unique<FailingLayer>());
  });
  Scenario scenario = small();
  scenario.model({linear(8), custom("failing"), linear(3)});
  const Result result = run(scenario.plan(), {.quiet = true});
  REQUIRE(result.ok());
  CHECK(result.samples_trained == 1200);
  int ended = 0;
  for (const auto& worker : result.totals.workers)
    ended += worker.end == "the tenth forward failed" ? 1 : 0;
  CHECK(ended == 1);
}

TEST_CASE("a scenario can define its data") {
  Scenario scenario = small();
  scenario.data("mine",
                [](std::uint64_t seed) { return load_data(clusters(3, 4, 100), seed + 1); });
  const Result result = run(scenario.plan(), {.quiet = true});
  REQUIRE(result.ok());
  CHECK(result.samples_trained == 200);
}

TEST_CASE("flags set the device, the initial weights and the augmentation") {
  const auto line = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "small");
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    Scenario scenario = small();
    scenario.augment({.flip = true}).device("worker1=cpu").init_from("a.safetensors");
    return parse(scenario, static_cast<int>(argv.size()), argv.data());
  };
  const CommandLine plain = line({"--no-out"});
  CHECK_FALSE(plain.exit_code);
  CHECK(plain.plan.augment == plan::Augment{true, 0});
  CHECK(plain.plan.device == "worker1=cpu");
  CHECK(plain.plan.init_from == "a.safetensors");
  CHECK_FALSE(plain.options.profile);
  const CommandLine changed = line({"--no-out", "--device", "workers=cuda:1", "--init", "b",
                                    "--augment", "shift=3", "--profile"});
  CHECK_FALSE(changed.exit_code);
  CHECK(changed.plan.augment == plan::Augment{false, 3});
  CHECK(changed.plan.device == "workers=cuda:1");
  CHECK(changed.plan.init_from == "b");
  CHECK(changed.options.profile);
  CHECK(line({"--augment", "none"}).plan.augment == plan::Augment{});
  CHECK(line({"--device", "worker2=cuda"}).exit_code == 2);
  CHECK(line({"--augment", "turn"}).exit_code == 2);
}

TEST_CASE("--slow takes one word, and a trace file must exist when a run starts") {
  const auto line = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "small");
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    return parse(small(), static_cast<int>(argv.size()), argv.data());
  };
  const auto two = line({"--no-out", "--slow", "0:4x,1:2x", "--slow", "all:pareto(1.5)"});
  CHECK_FALSE(two.exit_code);
  CHECK(two.plan.stragglers ==
        std::vector<plan::Straggler>{slow(0, 4), slow(1, 2), slow_by_pareto(all_workers, 1.5)});
  CHECK(line({"--no-out", "--slow", "0:4x", "1:2x"}).exit_code == 2);
  const auto traced = line({"--no-out", "--slow", "0:trace(/nonexistent/x)"});
  CHECK_FALSE(traced.exit_code);
  const Result refused = run(traced.plan, {.quiet = true});
  CHECK(refused.exit_code == 2);
  CHECK(refused.error.find("/nonexistent/x: cannot be read") != std::string::npos);
}

TEST_CASE("stop conditions: iterations, time and accuracy") {
  Plan plan = small().plan();
  plan.stop = {.epochs = 0, .iterations = 37};
  const Result counted = run(plan, {.quiet = true});
  CHECK(counted.iterations == 37);
  CHECK(counted.totals.end.text == "all 37 iterations are trained");
  plan.consistency = asp();
  CHECK(run(plan, {.quiet = true}).iterations == 37);
  plan.stop = {.epochs = 0, .seconds = 0.3};
  const Result timed = run(plan, {.quiet = true});
  CHECK(timed.ok());
  CHECK(timed.seconds >= 0.3);
  plan.stop = {.epochs = 100000, .accuracy = 0.9};
  plan.evaluate_every = 0.5;
  const Result target = run(plan, {.quiet = true});
  CHECK(target.ok());
  CHECK(target.totals.end.reason == msg::RunEnded::Reason::target_reached);
}

TEST_CASE("a fraction of an epoch trains that many samples") {
  Plan plan = small().plan();
  plan.stop.epochs = 1.5;
  CHECK(run(plan, {.quiet = true}).samples_trained == 900);
}

TEST_CASE("invalid plans are refused before anything starts, with an allowed value") {
  const auto refusal = [](auto change) {
    Plan plan = small().plan();
    change(plan);
    const Result result = run(plan, {.quiet = true});
    CHECK_FALSE(result.ran);
    CHECK(result.exit_code == 2);
    return result.error;
  };
  CHECK(refusal([](Plan& plan) { plan.workers = 0; }).find("--workers") != std::string::npos);
  CHECK(refusal([](Plan& plan) { plan.shards = 50; }).find("give --shards 1 to 2") !=
        std::string::npos);
  CHECK(refusal([](Plan& plan) { plan.model = {plan::Relu{}}; }).find("add a linear layer") !=
        std::string::npos);
  CHECK(refusal([](Plan& plan) { plan.model = {plan::Linear{4}}; }).find('3') != std::string::npos);
  CHECK(refusal([](Plan& plan) { plan.data = plan::FashionMnist{"/nowhere"}; }).find("/nowhere") !=
        std::string::npos);
  CHECK(refusal([](Plan& plan) {
          plan.consistency = plan::Bsp{};
          plan.prefetch = true;
        }).find("prefetch") != std::string::npos);
}

TEST_CASE("batch norm of vectors with micro-batches of one sample is refused") {
  Plan plan = small().plan();
  plan.model.insert(plan.model.begin(), plan::BatchNorm{});
  plan.batch = 1;
  CHECK_THAT(run(plan, {.quiet = true}).error, Catch::Matchers::Contains("give a larger --batch"));
  plan.batch = 4;
  plan.micro_batches = 4;
  CHECK_THAT(run(plan, {.quiet = true}).error, Catch::Matchers::Contains("fewer --micro-batches"));
  plan.micro_batches = 3;  // of 1, 1 and 2 samples
  CHECK(run(plan, {.quiet = true}).ok());
}

TEST_CASE("the run folder holds plan, metrics, result, weights and curves") {
  const TemporaryFolder folder;
  Plan plan = small().plan();
  plan.stop.epochs = 20;
  const Result result = run(plan, {.folder = folder / "run", .quiet = true, .trace_json = true});
  REQUIRE(result.ok());
  const auto kept = plan_from_file(folder / "run/plan.json");
  REQUIRE(kept.has_value());
  CHECK(*kept == plan);
  const auto json = read_json(folder / "run/result.json");
  for (const char* key :
       {"test_accuracy", "samples_per_second", "seconds", "iterations", "max_clock_gap",
        "staleness_bound", "parked_pulls", "samples_trained", "partial_pushes", "seed"})
    CHECK(json.contains(key));
  CHECK(json["samples_trained"] == 12000);
  const auto weights = read_safetensors(folder / "run/weights.safetensors");
  REQUIRE(weights.has_value());
  REQUIRE(weights->tensors.size() == 4);
  CHECK(weights->tensors[0].name == "0.weight");
  CHECK(std::memcmp(weights->tensors[0].data.data(), result.weights->at(0).data.data(),
                    8 * 4 * sizeof(float)) == 0);
  CHECK(read_text(folder / "run/curves.svg").find("<svg") != std::string::npos);
  std::istringstream metrics(read_text(folder / "run/metrics.jsonl"));
  int lines = 0;
  nlohmann::json last;
  for (std::string text; std::getline(metrics, text); ++lines) {
    const auto line = nlohmann::json::parse(text);
    CHECK(line.is_object());
    if (line.contains("iterations")) last = line;
  }
  CHECK(lines >= 2);
  for (const char* key : {"pushed_bytes", "pulled_bytes", "stage_bytes"})
    CHECK(last[key] == json[key]);
  std::istringstream events(read_text(folder / "run/events.jsonl"));
  int steps = 0;
  for (std::string line; std::getline(events, line);) {
    const auto event = nlohmann::json::parse(line);
    if (event["event"] != "step_finished") continue;
    ++steps;
    CHECK(event.size() == 6);
    CHECK(event["worker"].is_number());
    CHECK(event["iteration"].is_number());
    CHECK(event["samples"] > 0);
  }
  CHECK(steps == static_cast<int>(result.iterations));
  // An existing run folder is not overwritten.
  const Result again = run(plan, {.folder = folder / "run", .quiet = true});
  CHECK(again.exit_code == 2);
  CHECK(again.error.find("--out") != std::string::npos);
}

TEST_CASE("a run that loses a shard saves the last evaluated snapshot, and can continue from it") {
  const TemporaryFolder folder;
  Plan plan = small().plan();
  plan.stop.epochs = 20;
  plan.evaluate_every = 1;
  plan.simulated = plan::World{};
  plan.faults = {{address_of(ShardId(0)), std::int64_t{200}, 0, plan::Crash{}}};
  const std::string file = folder / "run/last-snapshot.safetensors";
  const Result result = run(plan, {.folder = folder / "run", .quiet = true});
  CHECK(result.exit_code == 1);
  CHECK_FALSE(result.weights);
  const auto iteration = result.totals.last_snapshot_iteration;
  CHECK(iteration > Iteration(0));
  CHECK(iteration < Iteration(200));
  CHECK_THAT(result.error,
             Catch::Matchers::Contains(concat("snapshot is of iteration ", iteration)) &&
                 Catch::Matchers::EndsWith("--init " + file));
  CHECK(read_json(folder / "run/result.json")["text"] == result.error);
  const auto snapshot = read_safetensors(file);
  REQUIRE(snapshot.has_value());
  REQUIRE(snapshot->tensors.size() == result.last_snapshot->size());
  CHECK(std::memcmp(snapshot->tensors[0].data.data(), result.last_snapshot->at(0).data.data(),
                    8 * 4 * sizeof(float)) == 0);
  plan.faults.clear();
  plan.init_from = file;
  CHECK(run(plan, {.quiet = true}).ok());
  // A run that ended before its first evaluation has no snapshot.
  plan.faults = {{address_of(ShardId(0)), std::int64_t{1}, 0, plan::Crash{}}};
  const Result early = run(plan, {.folder = folder / "early", .quiet = true});
  CHECK(early.exit_code == 1);
  CHECK_FALSE(early.last_snapshot);
  CHECK(early.error.find("last evaluated snapshot") == std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder / "early/last-snapshot.safetensors"));
}

}  // namespace leeway::test
