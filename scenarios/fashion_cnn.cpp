// fashion-cnn: two workers train a VGG-like convolutional network on Fashion-MNIST.
//
// Training images are flipped and shifted at random in each epoch, against overfitting: compare
// --augment none. To use a GPU, give --device cuda, or --device workers=cuda to keep the parameters
// on the CPU.
#include <leeway/leeway.hpp>

using namespace leeway;

int main(int argc, char** argv) {
  Scenario scenario("fashion-cnn",
                    "Classify Fashion-MNIST with a convolutional network, two workers.");
  scenario
      .description(
          "Two blocks of 3x3 convolutions with 64 and 128 channels, then 256 hidden units;\n"
          "momentum SGD with a cosine lr schedule, images flipped and shifted at random\n"
          "(--augment). Reaches a test accuracy of about 92%.")
      .data(fashion_mnist())
      .model(vgg_like(10))
      .loss(softmax_cross_entropy())
      .optimizer(momentum(0.05, 0.9))
      .lr_schedule(cosine(0.25))
      .augment({.flip = true, .shift = 1})
      .consistency(ssp(2))
      .workers(2)
      .shards(2)
      .batch(64)
      .epochs(8)
      .seed(1);
  return run(scenario, argc, argv).exit_code;
}
