// fashion-mlp: four workers train a multi-layer perceptron on Fashion-MNIST; one of them is slow in
// random bursts.
//
// Workers may run up to three iterations ahead of the slowest, so the others continue while worker
// 3 is slow, and it catches up afterwards. With --staleness bsp all of them wait; --slow none
// removes the straggler.
#include <leeway/leeway.hpp>

using namespace leeway;

int main(int argc, char** argv) {
  Scenario scenario(
      "fashion-mlp",
      "Classify Fashion-MNIST with an MLP, four workers, one of them slow in bursts.");
  scenario
      .description(
          "A 784-512-256-10 network, momentum SGD, two shards. Workers run at most three\n"
          "iterations ahead of the slowest (--staleness), so that the slow bursts of worker 3\n"
          "(--slow) do not stop the others.")
      .data(fashion_mnist())
      .model({flatten(), linear(512), relu(), linear(256), relu(), linear(10)})
      .loss(softmax_cross_entropy())
      .optimizer(momentum(0.05, 0.9))
      .lr_schedule(cosine())
      .consistency(ssp(3))
      .workers(4)
      .shards(2)
      .batch(64)
      .straggler(slow_in_bursts(3, 4, 0.2, 50))
      .epochs(10)
      .seed(1);
  return run(scenario, argc, argv).exit_code;
}
