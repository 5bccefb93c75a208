// Stores whose pushes and pulls travel encoded.
#include <catch2/catch.hpp>
#include <vector>

#include "kv.hpp"

namespace leeway::kv {
namespace {

using Catch::Matchers::Contains;

constexpr std::int64_t kFloats = 64;
const Shape kShape{kFloats};

/// One in eight elements is large.
std::vector<float> uneven_gradient() {
  std::vector<float> gradient(kFloats, 0.25f);
  for (std::size_t i = 0; i < gradient.size(); i += 8) gradient[i] = 8;
  return gradient;
}

}  // namespace

TEST_CASE("a sparse push sends the largest elements, and later pushes send the others") {
  const Loop loop = [](Store& store) {
    std::vector<float> weights(kFloats, 0.0f);
    const auto gradient = uneven_gradient();
    store.init("w", {weights.data(), kShape});
    store.set_optimizer(sgd(1));
    store.push("w", {gradient.data(), kShape});
    weights = store.get("w");
    for (std::size_t i = 0; i < weights.size(); ++i)
      CHECK(weights[i] == (i % 8 == 0 ? -8.0f : 0.0f));
    // Gradients of zero: the next pushes have residuals only.
    const std::vector<float> zeros(kFloats, 0.0f);
    for (int push = 0; push < 8; ++push) store.push("w", {zeros.data(), kShape}).wait();
    weights = store.get("w");
    for (std::size_t i = 0; i < weights.size(); ++i) CHECK(weights[i] == -gradient[i]);
  };
  const Options options{
      .workers = 1, .consistency = plan::Bsp{}, .compress = {.push = top_k(0.125), .pull = fp16()}};
  CHECK(run(loop, options).error == "");
  CHECK(simulate(loop, options).error == "");
}

TEST_CASE("new weights arrive exactly, and earlier gradients of other keys are not lost") {
  const Loop loop = [](Store& store) {
    const std::vector<float> zeros(kFloats, 0.0f), ones(kFloats, 1.0f);
    const auto gradient = uneven_gradient();
    for (const char* key : {"a", "b"}) store.init(key, {zeros.data(), kShape});
    store.set_optimizer(sgd(1));
    const std::vector<Key> both{"a", "b"};
    for (const Key& key : both) store.push(key, {gradient.data(), kShape});
    store.end_iteration();
    store.set("a", {ones.data(), kShape}).wait();
    CHECK(store.get("a") == ones);
    const auto b = store.get("b");
    for (std::size_t i = 0; i < b.size(); ++i) CHECK(b[i] == -gradient[i]);
    for (int push = 0; push < 20; ++push) {
      for (const Key& key : both) store.push(key, {zeros.data(), kShape});
      store.end_iteration();
    }
    CHECK(store.get("a") == ones);
    CHECK(store.get("b") == b);
  };
  const plan::Consistency policy = GENERATE(plan::Consistency(plan::Bsp{}), plan::Asp{});
  const Options options{.workers = 1, .consistency = policy, .compress = {.push = top_k(0.125)}};
  CHECK(run(loop, options).error == "");
  CHECK(simulate(loop, options).error == "");
}

TEST_CASE("encoded pushes without an optimizer are refused") {
  const Loop adds = [](Store& store) {
    float one = 1;
    store.init("w", {&one, {}});
    store.push("w", {&one, {}});
  };
  CHECK_THAT(simulate(adds, {.compress = {.push = int8()}}).error,
             Contains("sum, assign and updaters need gradients"));
}

}  // namespace leeway::kv
