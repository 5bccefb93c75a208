// The names of Leeway, of stories and of the standard library do not clash in one program.
#include <catch2/catch.hpp>
#include <chrono>
#include <leeway/leeway.hpp>
#include <leeway/sim/story.hpp>
#include <leeway/testing.hpp>

using namespace leeway;
using namespace leeway::sim::story;
using namespace std::chrono_literals;

TEST_CASE("a program may use the namespaces of scenarios and of stories together") {
  Scenario scenario("both", "Uses both namespaces.");
  scenario.data(line(3, 2, 0.1, 200))
      .model({linear(1)})
      .loss(mean_squared_error())
      .consistency(ssp(1))
      .workers(2)
      .shards(1)
      .batch(4)
      .epochs(2)
      .fault(crashes(worker(0), at_iteration(3), 0.1))
      .straggler(delay(1, 5ms));
  CHECK(scenario.plan().faults[0].actor == worker(0));
  Story story(scenario);
  story.until(begun(worker(1), 2)).crash(worker(1)).to_the_end();
  CHECK(story.happened(evicted(worker(1))));
  CHECK(story.happened(refused(worker(1))) == false);
  CHECK_FALSE(story.waits(worker(0), shard(0)));
}
