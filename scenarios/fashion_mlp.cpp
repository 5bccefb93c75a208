// fashion-mlp: a multi-layer perceptron learns Fashion-MNIST with four workers, one of which is
// slow in random bursts.
//
// The workers may be up to three iterations ahead of the slowest, so the others go on working while
// worker 3 has a slow spell, and catch it up when it is back. Try --staleness bsp to see everybody
// wait, or --slow none for an even field.
#include <leeway/runtime/scenario.hpp>

using namespace leeway;

int main(int argc, char** argv) {
  Scenario scenario(
      "fashion-mlp",
      "Classify Fashion-MNIST with an MLP, four workers, one of them slow in bursts.");
  scenario
      .description(
          "A 784-512-256-10 network, momentum SGD, two shards. Workers run ahead of the slowest by "
          "at most three\n"
          "iterations (--staleness), so that the slow spells of worker 3 (--slow) do not stop the "
          "others.")
      .data(fashion_mnist())
      .model({flatten(), linear(512), relu(), linear(256), relu(), linear(10)})
      .loss(softmax_cross_entropy())
      .optimizer(momentum(0.05, 0.9))
      .schedule(cosine())
      .consistency(ssp(3))
      .workers(4)
      .shards(2)
      .batch(64)
      .straggler(slow_in_bursts(3, 4, 0.2, 50))
      .epochs(10)
      .seed(1);
  return run(scenario, argc, argv).exit_code;
}
