// fashion-lenet: two workers train LeNet-5 (1998) on Fashion-MNIST.
//
// It has 62,000 weights, a fraction of fashion-cnn's, and trains much faster.
#include <leeway/leeway.hpp>

using namespace leeway;

int main(int argc, char** argv) {
  Scenario scenario("fashion-lenet", "Classify Fashion-MNIST with LeNet-5, two workers.");
  scenario
      .description(
          "Two 5x5 convolutions with 6 and 16 channels, then 120 and 84 hidden units; momentum\n"
          "SGD with a cosine lr schedule, images flipped at random (--augment).")
      .data(fashion_mnist())
      .model(lenet5(10))
      .loss(softmax_cross_entropy())
      .optimizer(momentum(0.02, 0.9))
      .lr_schedule(cosine(0.25))
      .augment({.flip = true})
      .consistency(ssp(2))
      .workers(2)
      .shards(1)
      .batch(32)
      .epochs(10)
      .seed(1);
  return run(scenario, argc, argv).exit_code;
}
