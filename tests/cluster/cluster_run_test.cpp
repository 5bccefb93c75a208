// run() with node processes, as a program calls it.
#include <atomic>

#include "leeway.hpp"
#include "runtime/cluster/options.hpp"
#include "tests/cluster/cluster_processes.hpp"

namespace leeway::test {
namespace {

/// Three workers whose iterations take at least a millisecond.
Plan on_nodes() {
  Scenario scenario("on-nodes", "Fits a line.");
  scenario.data(line(3, 2, 0.1, 600))
      .model({linear(1)})
      .loss(mean_squared_error())
      .workers(3)
      .shards(1)
      .batch(4)
      .epochs(2)
      .straggler(delay(all_workers, std::chrono::milliseconds(1)));
  return scenario.plan();
}

RunOptions options_for(Nodes& nodes) {
  RunOptions options{.quiet = true};
  options.cluster = std::make_shared<const ClusterOptions>(
      ClusterOptions{.nodes = *parse_nodes(nodes.text()), .silence = *parse_silence(kLongSilence)});
  return options;
}

}  // namespace

TEST_CASE("the result of a run on nodes has the effects of stragglers and faults") {
  Nodes nodes(2);
  Plan plan = on_nodes();
  plan.faults = {fault(worker(1), at_iteration(7), plan::Killed{}),
                 crashes(worker(2), at_iteration(50'000))};
  const Result result = run(plan, options_for(nodes));
  INFO(result.error);
  REQUIRE(result.ok());
  CHECK(result.samples_trained == 1200);
  CHECK(result.faults_fired == std::vector<bool>{true, false});
  CHECK(result.warnings.size() == 1);
  CHECK(result.totals.workers[1].iterations == 7);
  CHECK(result.totals.slowed_iterations[0] == result.iterations + 1);  // the killed one
  CHECK(result.straggler_seconds[0] ==
        Approx(static_cast<double>(result.iterations + 1) * 1e-3).epsilon(1e-6));
}

TEST_CASE("an exception of on_event ends a run on nodes, and leaves run() unchanged") {
  struct Mine {
    int number;
  };
  Nodes nodes(2);
  Plan plan = on_nodes();
  plan.stop.epochs = 100'000;
  RunOptions options = options_for(nodes);
  options.trace = true;  // the events of all nodes
  std::atomic<int> calls{0};
  options.on_event = [&](Address, Instant, const Event&) {
    if (++calls >= 50) throw Mine{42};
  };
  int caught = 0;
  try {
    run(plan, options);
  } catch (const Mine& mine) {
    caught = mine.number;
  }
  CHECK(caught == 42);
  CHECK(nodes.all_free());
  CHECK(run(on_nodes(), options_for(nodes)).ok());
}

}  // namespace leeway::test
