// fashion-cnn: a convolutional network in the manner of VGG learns Fashion-MNIST with two workers.
//
// Training images are turned and moved at random, anew in each epoch, so that the network does not
// learn them by heart: try --augment none. A GPU does it faster, if there is one: --device cuda, or
// --device workers=cuda to keep the parameters on the processor.
#include <leeway/runtime/scenario.hpp>

using namespace leeway;

int main(int argc, char** argv) {
  Scenario scenario("fashion-cnn",
                    "Classify Fashion-MNIST with a convolutional network, two workers.");
  scenario
      .description(
          "Two stages of 3x3 convolutions, 64 and 128 channels, then 256 hidden units; momentum "
          "SGD with a\n"
          "cosine schedule, images flipped and shifted at random (--augment). Reaches about 92% of "
          "the test set.")
      .data(fashion_mnist())
      .model(vgg_like(10))
      .loss(softmax_cross_entropy())
      .optimizer(momentum(0.05, 0.9))
      .schedule(cosine(0.25))
      .augment({.flip = true, .shift = 1})
      .consistency(ssp(2))
      .workers(2)
      .shards(2)
      .batch(64)
      .epochs(8)
      .seed(1);
  return run(scenario, argc, argv).exit_code;
}
