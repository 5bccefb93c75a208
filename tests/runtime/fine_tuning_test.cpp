// Runs that begin with trained weights, and freeze some layers.
#include <catch2/catch.hpp>
#include <cstring>

#include "core/text.hpp"
#include "leeway.hpp"
#include "models/safetensors.hpp"
#include "policies/pipeline/schedule.hpp"
#include "tests/support/process.hpp"

namespace leeway::test {
namespace {

using Catch::Matchers::Contains;

Scenario small() {
  Scenario scenario("small", "A small task.");
  scenario.data(clusters(3, 4, 600))
      .model({linear(8), batch_norm(), relu(), linear(6), relu(), linear(3)})
      .optimizer(momentum(0.1, 0.9))
      .workers(2)
      .shards(2)
      .batch(12)
      .epochs(2);
  return scenario;
}

bool same(const Result& a, const Result& b, const std::string& parameter) {
  const auto left = a.weight(parameter), right = b.weight(parameter);
  return left.size() == right.size() &&
         std::memcmp(left.data(), right.data(), left.size_bytes()) == 0;
}

/// The weights that the seed gives, as a run returns them that trains no parameter.
Result untrained() {
  Scenario scenario = small();
  scenario.parameter_group("*", 0).iterations(2);
  return run(scenario.plan(), {.quiet = true});
}

Result trained(Plan plan, const std::string& frozen) {
  plan.fine_tuning.freeze = frozen;
  const Result result = run(plan, {.quiet = true});
  INFO(result.error);
  REQUIRE(result.ok());
  return result;
}

TEST_CASE("frozen layers keep their weights under every policy, and the others train") {
  const Result before = untrained();
  REQUIRE(before.ok());
  for (const auto& policy : {bsp(), ssp(3), asp(), backup(1), adaptive(1, 8)}) {
    for (const bool simulated : {false, true}) {
      Plan plan = small().consistency(policy).workers(3).plan();
      if (simulated) plan.simulated = plan::World{};
      for (const std::string frozen : {"0-1", "3", "5", "0-3"}) {
        INFO(plan::Consistency(policy).index() << ' ' << simulated << ' ' << frozen);
        const Result after = trained(plan, frozen);
        const auto is_frozen = [&](char layer) {
          return layer >= frozen.front() && layer <= frozen.back();
        };
        for (const std::string layer : {"0", "1", "3", "5"}) {
          CHECK(same(before, after, layer + ".weight") == is_frozen(layer[0]));
          CHECK(same(before, after, layer + ".bias") == is_frozen(layer[0]));
        }
      }
    }
  }
}

TEST_CASE("as in PyTorch, the statistics of a frozen batch norm continue") {
  const Result before = untrained(), after = trained(small().plan(), "0-3");
  CHECK(same(before, after, "1.weight"));
  CHECK_FALSE(same(before, after, "1.running_mean"));
  CHECK_FALSE(same(before, after, "1.running_var"));
}

TEST_CASE("a pipeline with frozen layers gives the weights of one worker, bit for bit") {
  const auto model = [] {
    Scenario scenario = small();
    scenario.model({linear(8), relu(), linear(7), relu(), linear(6), relu(), linear(3)})
        .consistency(bsp())
        .micro_batches(3);
    return scenario;
  };
  for (const std::string frozen : {"0", "0-2", "4", "0-4", "2,6"}) {
    const Result whole = trained(model().workers(1).plan(), frozen);
    for (const std::string schedule :
         {"gpipe", "1f1b", "zb_h1", "interleaved", "interleaved_zb", "zb_v", "dualpipe_v"}) {
      INFO(frozen << ' ' << schedule);
      Scenario scenario = model();
      const bool in_chunks = pipeline::usual_chunks(schedule) > 1;
      scenario.stages(2).pipeline_schedule(schedule, in_chunks ? 2 : 1);
      if (in_chunks) scenario.micro_batches(4);
      const Result split = trained(scenario.plan(), frozen);
      const Result one =
          in_chunks ? trained(model().workers(1).micro_batches(4).plan(), frozen) : whole;
      for (const auto& tensor : *one.weights) CHECK(same(one, split, tensor.name));
    }
  }
}

TEST_CASE("frozen layers keep their weights in pipelines without flushes") {
  const Result before = [] {
    Scenario scenario = small();
    scenario.model({linear(8), relu(), linear(7), relu(), linear(3)}).parameter_group("*", 0);
    return run(scenario.iterations(2).plan(), {.quiet = true});
  }();
  REQUIRE(before.ok());
  for (const std::string schedule : {"weight_stashing", "2bw"}) {
    Scenario scenario = small();
    scenario.model({linear(8), relu(), linear(7), relu(), linear(3)})
        .consistency(ssp(4))
        .micro_batches(3)
        .stages(2)
        .pipelines(2)
        .pipeline_schedule(schedule);
    const Result after = trained(scenario.plan(), "0,2");
    CHECK(same(before, after, "0.weight"));
    CHECK(same(before, after, "2.bias"));
    CHECK_FALSE(same(before, after, "4.weight"));
  }
}

TEST_CASE("freezing everything, or a layer that the model lacks, is refused") {
  const auto error_of = [](const std::string& frozen) {
    Scenario scenario = small();
    const Result result = run(scenario.freeze(frozen).plan(), {.quiet = true});
    CHECK(result.exit_code == 2);
    return result.error;
  };
  CHECK_THAT(error_of("0-5"), Contains("nothing to train; give --freeze fewer layers"));
  CHECK_THAT(error_of("0-6"), Contains("there is no layer 6; give layers from 0 to 5"));
  CHECK_THAT(error_of("3-1"), Contains("\"3-1\" is not a range of layers"));
  CHECK_THAT(error_of("first"), Contains("give --freeze 0-3"));
}

TEST_CASE("fine-tuning begins with the weights of another program and trains a new last layer") {
  const TemporaryFolder folder;
  const std::string file = folder / "pretrained.safetensors";
  const Result source = trained(small().plan(), "");
  std::vector<NamedTensor> tensors = *source.weights;
  for (auto& tensor : tensors) tensor.name = "net." + tensor.name;
  REQUIRE(write_safetensors(file, tensors));
  Scenario scenario = small();
  scenario.data(clusters(5, 4, 600))
      .model({linear(8), batch_norm(), relu(), linear(6), relu(), linear(5)})
      .init_from(file)
      .fine_tuning({.init_map = "net.=", .partial = true, .freeze = "0-3"});
  const Result tuned = run(scenario.plan(), {.quiet = true});
  INFO(tuned.error);
  REQUIRE(tuned.ok());
  for (const std::string name : {"0.weight", "0.bias", "1.weight", "3.weight", "3.bias"})
    CHECK(same(source, tuned, name));
  CHECK(tuned.weight("5.weight").size() == 5 * 6);
  // Without the settings, the file is refused, and the error names them.
  Plan plan = scenario.plan();
  plan.fine_tuning = {};
  CHECK_THAT(run(plan, {.quiet = true}).error, Contains("does not match the model"));
  plan.init_from.clear();
  plan.fine_tuning.init_map = "net.=";
  CHECK_THAT(run(plan, {.quiet = true}).error, Contains("give --init FILE"));
}

TEST_CASE("flags set the renamed prefixes, the partial file and the frozen layers") {
  const auto line = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"small", "--no-out"});
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    return parse(small(), static_cast<int>(argv.size()), argv.data());
  };
  const CommandLine given = line({"--init", "a", "--init-map", "net.=", "--init-map", "x.=y.",
                                  "--init-partial", "--freeze", "0-1"});
  CHECK_FALSE(given.exit_code);
  CHECK(given.plan.fine_tuning == plan::FineTuning{"net.=,x.=y.", true, "0-1"});
  CHECK(line({"--freeze", "none"}).plan.fine_tuning == plan::FineTuning{});
  CHECK(line({"--freeze", "9"}).exit_code == 2);
  CHECK(line({"--init-map", "net.="}).exit_code == 2);
  CHECK(line({"--init", "a", "--init-map", "net."}).exit_code == 2);
}

}  // namespace
}  // namespace leeway::test
