// thousand-workers: what a staleness bound does among a thousand workers, in virtual time.
//
// Every worker and shard has a node of its own in a simulated network; every gradient is computed
// for real, so the loss at the end is what such a cluster would reach. Try --staleness bsp,
// --shards 1 to see the shard's link become the limit, or --gradients none for the times alone.
#include <leeway/runtime/scenario.hpp>

using namespace leeway;

int main(int argc, char** argv) {
  Scenario scenario("thousand-workers",
                    "Simulate a thousand workers that learn Fashion-MNIST, in virtual time.");
  scenario
      .description(
          "A 784-32-10 network, plain SGD, batch 16, a hundred iterations of each worker. It is "
          "always simulated,\n"
          "with or without --simulate: a thousand threads would only wait for each other's "
          "processors.")
      .data(fashion_mnist())
      .model(mlp({32}, 10))
      .loss(softmax_cross_entropy())
      .optimizer(sgd(0.05))
      .consistency(ssp(3))
      .workers(1000)
      .shards(4)
      .batch(16)
      .epochs(0)
      .iterations(100 * 1000)
      .evaluate_every(0)
      .simulated();
  return run(scenario, argc, argv).exit_code;
}
