// A user's test of a run that loses a worker, in the simulator.
#include <leeway/leeway.hpp>
#include <leeway/sim/story.hpp>

int main() {
  using namespace leeway;
  using namespace leeway::sim::story;
  Scenario scenario("lossy", "Loses a worker.");
  scenario.data(line(3, 2, 0.1, 200))
      .model({linear(1)})
      .loss(mean_squared_error())
      .consistency(ssp(1))
      .workers(2)
      .shards(1)
      .batch(4)
      .epochs(2);
  Story story(scenario);
  story.until(begun(worker(1), 2)).crash(worker(1)).to_the_end();
  return story.happened(evicted(worker(1))) ? 0 : 1;
}
