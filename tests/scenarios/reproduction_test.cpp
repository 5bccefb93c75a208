#include "scenarios/reproduction.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "scenarios/tuned_study.hpp"
#include "tests/support/process.hpp"

namespace leeway::study {
namespace {

using Catch::Matchers::Contains;
using test::TemporaryFolder;

Plan small_plan() {
  Scenario scenario("small", "Finds a line.");
  scenario.data(line(3, 2, 0.1)).model({linear(1)}).loss(mean_squared_error()).optimizer(sgd(0.1));
  scenario.consistency(bsp()).workers(2).shards(1).epochs(0).iterations(4).simulated({});
  return scenario.plan();
}

/// Runs a study of one subject with two rates in `folder`. Returns its exit code.
int run_study(const std::string& folder, const plan::Consistency& consistency,
              const std::string& figure = "loss") {
  CommandLine line;
  line.plan = small_plan();
  line.options.folder = folder;
  line.options.quiet = true;
  Report report(line);
  const Measures measures{
      .of =
          [&](const Result& result) {
            return Campaign::Figures{{figure, result.totals.evaluations.back().loss}};
          },
      .failed = {{figure, kNever}},
      .criteria = {figure}};
  const Subject subject{"method", {0.01, 0.1}, [&](double) {
                          Plan plan = line.plan;
                          plan.consistency = consistency;
                          return plan;
                        }};
  TunedStudy study(1, {subject}, measures, true);
  return study.run(report, {{"plan", to_json(line.plan)}}, [&] {
    CHECK(study.tuning("method").at(figure) > 0);
    CHECK_THAT(study.seeds_table("Losses", {"method"}, figure, loss_text),
               Contains("Losses\n\n") && Contains("seed           1           2           3\n") &&
                   Contains("method "));
    report.print("a table\n");
  });
}

}  // namespace

TEST_CASE("a study continues in its folder, but not after a change of a method or of its figures") {
  const TemporaryFolder folder;
  REQUIRE(run_study(folder / "run", bsp()) == 0);
  const auto size = [&] { return test::read_text(folder / "run/trials.jsonl").size(); };
  const auto of_all_trials = size();
  REQUIRE(run_study(folder / "run", bsp()) == 0);
  CHECK(size() == of_all_trials);
  CHECK(run_study(folder / "run", ssp(3)) == 2);  // a method of the same name
  CHECK(run_study(folder / "run", bsp(), "other") == 2);
  CHECK(size() == of_all_trials);
}

TEST_CASE("the fingerprint of trials follows their names and plans") {
  Plan plan = small_plan();
  const std::string first = fingerprint(std::vector<Named>{{"a", plan}});
  CHECK(first.size() == 16);
  CHECK(fingerprint(std::vector<Named>{{"a", plan}}) == first);
  CHECK(fingerprint(std::vector<Named>{{"b", plan}}) != first);
  plan.optimizer.learning_rate *= 2;
  CHECK(fingerprint(std::vector<Named>{{"a", plan}}) != first);
}

TEST_CASE("--full is taken out of the arguments") {
  char program[] = "program", seed[] = "--seed", number[] = "7", full[] = "--full";
  char* words[] = {program, full, seed, number};
  int count = 4;
  CHECK(take_full(count, words));
  REQUIRE(count == 3);
  CHECK(words[1] == std::string("--seed"));
  CHECK(words[2] == std::string("7"));
  CHECK_FALSE(take_full(count, words));
  CHECK(count == 3);
}

TEST_CASE("published figures are beside measured ones, and a verdict fits into a page") {
  const Comparison rows[] = {{"goodput", "88.00%", "87.31%", "-0.7 points"},
                             {"order", "a, b", "b"}};
  CHECK(comparison_table(rows) ==
        "\n         published    here    deviation"
        "\n goodput    88.00%  87.31%  -0.7 points"
        "\n   order      a, b       b\n");
  CHECK(verdict_line(Outcome::reproduced, "it is so") == "\nVerdict: reproduced; it is so.\n");
  CHECK(verdict_line(Outcome::null_result, "seeds") == "\nVerdict: a null result; seeds.\n");
  const std::string text =
      verdict_line(Outcome::not_reproduced, std::string(60, 'a') + ' ' + std::string(60, 'b'));
  CHECK(text ==
        "\nVerdict: not reproduced; " + std::string(60, 'a') + '\n' + std::string(60, 'b') + ".\n");
}

TEST_CASE("the losses of a run are kept as figures, and drawn in the order of time") {
  Result result;
  for (const auto& [ms, loss] : {std::pair{500, 2.0}, {12000, 0.25}, {3000, 1.0}}) {
    auto& evaluation = result.totals.evaluations.emplace_back();
    evaluation.now = Instant{} + milliseconds(ms);
    evaluation.loss = loss;
  }
  Campaign::Figures figures{{"loss", 0.25}, {"loss at 20", kNever}};
  keep_losses(figures, result);
  const Series series = losses_of("run", figures);
  CHECK(series.name == "run");
  CHECK(series.points == std::vector<std::pair<double, double>>{{0.5, 2}, {3, 1}, {12, 0.25}});
}

TEST_CASE("a band draws medians, and the ranges of the seeds with gaps between them") {
  Band band("here");
  band.add(1, {2, 3, 5});
  band.add(2, {4, 6, kNever});
  Chart chart;
  band.append_to(chart);
  REQUIRE(chart.series.size() == 2);
  CHECK(chart.series[0].points == std::vector<std::pair<double, double>>{{1, 3}, {2, 6}});
  REQUIRE(chart.series[1].points.size() == 6);
  CHECK(chart.series[1].points[0] == std::pair<double, double>{1, 2});
  CHECK(chart.series[1].points[1] == std::pair<double, double>{1, 5});
  CHECK(std::isinf(chart.series[1].points[2].second));
}

}  // namespace leeway::study
