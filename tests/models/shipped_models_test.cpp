#include "runtime/models.hpp"
#include "tests/models/support.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

constexpr int kClasses = 4;
constexpr std::int64_t kBatch = 8;

/// The loss after 30 steps on one small batch, relative to the first loss. The samples of a class
/// share a random pattern.
double relative_loss(const Layers& layers, const Shape& input, float rate) {
  kernels::use_one_compute_thread();
  const auto model = classifier(layers, input, kClasses);
  Memory memory(model);
  memory.initialize(1);
  RandomBatch data(*model, kBatch, 1);
  const auto count = static_cast<std::size_t>(input.count());
  for (std::size_t b = 0; b < static_cast<std::size_t>(kBatch); ++b) {
    data.labels[b] = static_cast<std::int32_t>(b % kClasses);
    for (std::size_t i = 0; b >= kClasses && i < count; ++i)
      data.x[b * count + i] = data.x[(b - kClasses) * count + i] + 0.2f * data.x[b * count + i];
  }
  Pass pass(model, kBatch, true);
  const double first = descend(pass, memory, data.batch, rate);
  for (int step = 1; step < 30; ++step) descend(pass, memory, data.batch, rate);
  return pass.forward(data.batch, memory.weights()).loss / first;
}

}  // namespace

TEST_CASE("logistic_regression learns a small task", "[shipped]") {
  CHECK(relative_loss(logistic_regression(kClasses), {2, 6, 6}, 0.1f) < 0.3);
}

TEST_CASE("mlp learns a small task", "[shipped]") {
  CHECK(relative_loss(mlp({32, 16}, kClasses), {2, 6, 6}, 0.1f) < 0.3);
}

TEST_CASE("lenet5 learns a small task, and has as many parameters as the original", "[shipped]") {
  CHECK(classifier(lenet5(10), {1, 28, 28}, 10)->parameter_count() == 61'706);
  CHECK(relative_loss(lenet5(kClasses), {1, 28, 28}, 0.1f) < 0.3);
}

TEST_CASE("vgg_like learns a small task", "[shipped]") {
  CHECK(classifier(vgg_like(10), {1, 28, 28}, 10)->output_of(6) == Shape{128 * 7 * 7});
  CHECK(relative_loss(vgg_like(kClasses), {1, 8, 8}, 0.1f) < 0.3);
}

TEST_CASE("small_resnet learns a small task, on images of any size", "[shipped]") {
  const auto model = classifier(small_resnet(10), {3, 32, 32}, 10);
  CHECK(model->output_of(model->layers() - 4) == Shape{64, 8, 8});
  CHECK(relative_loss(small_resnet(kClasses), {3, 8, 8}, 0.1f) < 0.3);
}

TEST_CASE("the models have one output per class, for any number of classes", "[shipped]") {
  for (const int classes : {2, 100}) {
    const auto count = static_cast<std::uint32_t>(classes);
    for (const Layers& layers : {logistic_regression(count), mlp({20}, count), lenet5(count),
                                 vgg_like(count), small_resnet(count)})
      CHECK(classifier(layers, {1, 28, 28}, classes)->output() == Shape{classes});
  }
}
