// thousand-workers: a staleness bound with a thousand workers, in virtual time.
//
// Every worker and shard has its own node in a simulated network. Gradients are real, so a real
// cluster would reach the same loss. Try --staleness bsp, --shards 1 to make the shard's link the
// bottleneck, or --gradients none to simulate only times.
#include <leeway/leeway.hpp>

using namespace leeway;

int main(int argc, char** argv) {
  Scenario scenario("thousand-workers",
                    "Simulate a thousand workers that learn Fashion-MNIST, in virtual time.");
  scenario
      .description(
          "A 784-32-10 network, plain SGD, batch 16, a hundred iterations per worker. It is\n"
          "always simulated, even without --simulate, because a thousand threads would mostly\n"
          "wait for a core.")
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
