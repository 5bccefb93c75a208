// Text models end to end: training on characters, the run folder, and generated text.

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>

#include "leeway.hpp"
#include "models/datasets/vocabulary.hpp"
#include "models/safetensors.hpp"
#include "runtime/sample.hpp"
#include "tests/models/datasets/files.hpp"

using namespace leeway;
using namespace leeway::test;
using Catch::Contains;

namespace {

/// A repeated sequence in which each character determines the next.
std::string alphabet(int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += "abcdefghij\n";
  return text;
}

/// Trains until the model predicts the file's text almost perfectly.
Scenario small(const std::string& file) {
  Scenario scenario("small", "A small text.");
  scenario.data(text(12, file))
      .model(gpt({.layers = 1, .width = 16, .heads = 2}))
      .optimizer(adam(0.01))
      .consistency(bsp())
      .workers(2)
      .shards(2)
      .batch(8)
      .epochs(8);
  return scenario;
}

}  // namespace

TEST_CASE("a run on text measures per character, saves its vocabulary, and continues a prompt") {
  const TemporaryFolder place;
  const std::string folder = place.path("run");
  const Plan plan = small(place.write("a.txt", alphabet(200))).plan();
  const Result result = run(plan, {.folder = folder, .quiet = true});
  INFO(result.error);
  REQUIRE(result.ok());
  // Per character, not per window of twelve.
  CHECK(result.test_loss < 0.1);
  CHECK(result.test_accuracy > 0.99);
  CHECK(result.test_accuracy <= 1);
  for (const auto& progress : result.history) CHECK_FALSE(progress.train_accuracy > 1);
  CHECK(result.samples_trained == 8 * ((200 * 11 - 220 - 1) / 12));
  REQUIRE(result.vocabulary);
  CHECK(result.vocabulary->size() == 11);

  const SampleOptions sure{.prompt = "cde", .characters = 40, .temperature = 0};
  const auto from_result = sample(result, sure), from_folder = sample(folder, sure);
  Result untrained = result;
  untrained.plan.simulated = plan::World{.cost_only = true};
  CHECK_FALSE(untrained.learned());
  CHECK_THAT(sample(untrained, sure).error().text,
             Contains("train again without --gradients none"));
  REQUIRE(from_result);
  CHECK(*from_result == alphabet(10).substr(2, 43));
  REQUIRE(from_folder);
  CHECK(*from_folder == *from_result);
  // Without a prompt the text begins a line.
  CHECK(*sample(folder, {.characters = 15, .temperature = 0}) == "abcdefghij\nabcd");

  const auto drawn = [&](std::uint64_t seed) {
    return *sample(folder, {.characters = 200, .temperature = 5, .seed = seed});
  };
  CHECK(drawn(1) == drawn(1));
  CHECK(drawn(1) != drawn(2));

  CHECK_THAT(sample(folder, {.prompt = "aQ"}).error().text,
             Contains("--prompt: \"Q\" does not occur in the training text"));
  CHECK_THAT(sample(folder, {.characters = 0}).error().text, Contains("--characters: 0"));
  for (const double temperature : {-1.0, std::nan("")})
    CHECK_THAT(sample(folder, {.temperature = temperature}).error().text,
               Contains("--temperature: ") && Contains("give 0 or more"));
  std::filesystem::remove(folder + "/weights.safetensors");
  CHECK_THAT(sample(folder).error().text, Contains("has no weights.safetensors"));
  std::filesystem::remove(folder + "/vocabulary.json");
  CHECK_THAT(sample(folder).error().text, Contains("has no vocabulary.json"));
  CHECK_THAT(sample(place.path("nowhere")).error().text, Contains("is not a run folder"));
}

TEST_CASE("weights of another model, and weights that are not finite, are refused") {
  const TemporaryFolder place;
  Plan plan = small(place.write("a.txt", alphabet(20))).plan();
  plan.stop.epochs = 0.5;
  const Result result = run(plan, {.quiet = true});
  REQUIRE(result.ok());
  auto weights = *result.weights;
  plan.model = gpt({.layers = 1, .width = 32, .heads = 2});
  CHECK_THAT(sample(plan, *result.vocabulary, weights).error().text,
             Contains("the weights do not match the plan's model: 0.weight is of shape 11x16 and "
                      "should be of shape 11x32"));
  weights.erase(weights.begin());
  CHECK_THAT(sample(result.plan, *result.vocabulary, weights).error().text,
             Contains("0.weight is missing"));
  weights = *result.weights;
  Blob bad = Blob::floats(weights[0].shape.count());
  std::fill_n(bad.mutable_floats(), weights[0].shape.count(), NAN);
  weights[0].data = bad;
  CHECK_THAT(sample(result.plan, *result.vocabulary, weights).error().text,
             Contains("has diverged; train again"));
  CHECK_THAT(sample(Result{}).error().text, Contains("has no weights or no vocabulary"));
  CHECK_THAT(sample(Plan{}, *result.vocabulary, {}).error().text,
             Contains("was not trained on text"));
}

TEST_CASE("two workers learn more from the King James Bible than the frequencies of letters") {
  Scenario scenario("kjv", "");
  scenario.data(text(32))
      .model(gpt({.layers = 1, .width = 32, .heads = 2}))
      .optimizer(adam(5e-3))
      .consistency(bsp())  // deterministic
      .workers(2)
      .shards(2)
      .batch(16)
      .epochs(0)
      .iterations(400)
      .evaluate_every(0);
  const Result result = run(scenario.plan(), {.quiet = true});
  INFO(result.error);
  REQUIRE(result.ok());
  // The loss is 4.3 for a random guess, and about 3 for a guess by the frequencies of letters.
  CAPTURE(result.test_loss, result.test_accuracy);
  CHECK(result.test_loss < 2.7);
  CHECK(result.test_accuracy > 0.25);
}
