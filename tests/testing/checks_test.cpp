// simulate(), and the checks of a simulated run.
#include <catch2/catch.hpp>
#include <sstream>

#include "tests/testing/small.hpp"

using namespace leeway;
using test::small;

namespace {

template <class T>
std::string printed(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("simulate repeats a run by its seed, and another seed gives another run") {
  const SimulatedRun one = simulate(small(), {.seed = 3}), same = simulate(small(), {.seed = 3});
  REQUIRE(one.ok());
  CHECK(one.seed == 3);
  CHECK(one.protocol_hash == same.protocol_hash);
  CHECK(one.seen.size() == same.seen.size());
  CHECK(one.weight("0.weight")[0] == same.weight("0.weight")[0]);
  CHECK(simulate(small(), {.seed = 4}).weight("0.weight")[0] != one.weight("0.weight")[0]);
  const SimulatedRun slower = simulate(small(), {.world = plan::World{.speed = 1e-3}});
  CHECK(slower.seconds > 2 * one.seconds);
}

TEST_CASE("a correct run trains each sample once, within its bound") {
  const SimulatedRun run = simulate(small());
  CHECK(ended_well(run));
  CHECK(trained_exactly_once(run));
  CHECK(trained_exactly_once(run).text() == "all 1280 samples were trained once");
  CHECK(max_clock_gap(run) <= 3);
  CHECK_FALSE(max_clock_gap(run) < 1);
  CHECK(lags(run).max() >= 1);
  CHECK(lags(run).median() <= lags(run).max().value());
  CHECK(lags(run).count(0).value() + lags(run).count(1).value() > 0);
}

TEST_CASE("each sample is trained once under every policy, with faults and in pipelines") {
  const std::vector<plan::Consistency> policies = {bsp(), ssp(2), asp(), adaptive(1, 4), backup(1)};
  for (const auto& policy : policies) {
    INFO("policy " << policy.index());
    Scenario scenario = small();
    scenario.consistency(policy)
        .straggler(slow(3, 4))
        .fault(fault(worker(1), at_iteration(5), plan::Killed{}))
        .fault(crashes(worker(2), at_iteration(8), 0.01));
    CHECK(trained_exactly_once(simulate(scenario)));
  }
  Scenario piped = small();
  piped.stages(2).pipelines(2).micro_batches(4).consistency(bsp());
  CHECK(trained_exactly_once(simulate(piped.fault(crashes(worker(2), at_iteration(5), 0.01)))));
  CHECK(trained_exactly_once(simulate(small().epochs(1.5))));
  const SimulatedRun limited = simulate(small().iterations(37));
  CHECK(limited.iterations == 37);
  CHECK(trained_exactly_once(limited));
}

TEST_CASE("trained_exactly_once names the samples that were trained twice or never") {
  SimulatedRun run = simulate(small());
  const auto is_trained = [](const SeenEvent& one) { return one.event.as<event::Trained>(); };
  const auto first = std::find_if(run.seen.begin(), run.seen.end(), is_trained);
  REQUIRE(first != run.seen.end());
  const event::Trained trained = *first->event.as<event::Trained>();
  SimulatedRun twice = run;
  twice.seen.push_back(*first);
  CHECK_FALSE(trained_exactly_once(twice));
  CHECK(contains(trained_exactly_once(twice).text(), " of epoch 0 were trained by worker "));
  run.seen.erase(first);
  CHECK_FALSE(trained_exactly_once(run));
  CHECK(trained_exactly_once(run).text() ==
        "sample " + std::to_string(trained.begin) + " of epoch 0 was not trained");
}

TEST_CASE("the others wait for a slow worker, and not for a fast one") {
  const SimulatedRun run = simulate(small().straggler(slow(3, 4)));
  CHECK(waited_for(run, worker(3)) > 20_percent);
  CHECK(waited_for(run, worker(0)) < 1_percent);
  CHECK(waited(run, worker(0)) > 0.2);
  CHECK(waited(run, worker(3)) < 0.2);
  const Verdict verdict = waited_for(run, worker(3)) > 0.99;
  CHECK_FALSE(verdict);
  CHECK(contains(verdict.text(), "share of their time that the others waited for worker 3 is 0."));
  CHECK(contains(verdict.text(), ", which is not > 0.99"));
}

TEST_CASE("events are selected by type, actor, worker and time") {
  const SimulatedRun run = simulate(small().straggler(slow(3, 4)));
  const auto parked = events(run).of<event::PullParked>();
  CHECK(parked.any());
  CHECK(parked.count() == static_cast<double>(run.parked_pulls));
  CHECK(parked.at(shard(0)).size() == parked.size());
  CHECK(parked.at(shard(1)).none());
  std::size_t by_worker = 0;
  for (std::uint32_t i = 0; i < 4; ++i) by_worker += parked.of(worker(i)).size();
  CHECK(by_worker == parked.size());
  CHECK(parked[0]->worker == WorkerId(parked.of(worker(parked[0]->worker.value()))[0]->worker));
  const auto late = nanoseconds(static_cast<std::int64_t>(run.seconds * 1e9));
  CHECK(parked.between({}, late + seconds(1)).size() == parked.size());
  CHECK(parked.between(late + seconds(1), late + seconds(2)).empty());
  CHECK(events(run).of<event::Evicted>().none());
}

TEST_CASE("no check holds for a run that was refused or failed") {
  const SimulatedRun refused = simulate(small().workers(0));
  const SimulatedRun failed = simulate(small().fault(crashes(shard(0), at_iteration(5))));
  for (const SimulatedRun& run : {refused, failed}) {
    CHECK_FALSE(run.ok());
    CHECK_FALSE(ended_well(run));
    CHECK_FALSE(all_had_effect(run));
    CHECK_FALSE(trained_exactly_once(run));
    CHECK_FALSE(max_clock_gap(run) < 100);
    CHECK_FALSE(max_clock_gap(run) >= 0);
    CHECK_FALSE(waited_for(run, worker(0)) < 1);
    CHECK_FALSE(lags(run).max() >= 0);
    CHECK_FALSE(events(run).of<event::Evicted>().none());
    CHECK(events(run).of<event::Evicted>().empty());
  }
  CHECK(contains(printed(ended_well(refused)), "the run of seed 1 was refused: workers: 0"));
  CHECK(contains(printed(max_clock_gap(failed)), "the run of seed 1 failed: "));
  CHECK_FALSE(waited(simulate(small()), worker(9)) >= 0);
}

TEST_CASE("verdicts combine, and keep the explanation of the first that does not hold") {
  const Verdict yes(true, "yes"), no(false, "no"), never(false, "never");
  CHECK((yes && yes));
  CHECK((yes && no).text() == "no");
  CHECK((no && never).text() == "no");
  CHECK(!no);
  CHECK(printed(no) == "no");
  CHECK(printed(Verdict(false)) == "does not hold");
  CHECK(printed(Measured(3, "gap")) == "3 (gap)");
  CHECK(20_percent == 0.2);
  CHECK(2.5_percent == Approx(0.025));
}

TEST_CASE("a story of a scenario needs no helpers") {
  using namespace leeway::sim::story;
  Story story(small());
  story.hold(worker(1), shard(0)).until(parked(worker(0))).crash(worker(1)).to_the_end();
  CHECK(story.happened(evicted(worker(1))));
  CHECK(story.totals().end.samples_trained == 1280);
  CHECK_THROWS_WITH(Story(small().workers(0)), Catch::Contains("workers: 0 is not allowed"));
}
