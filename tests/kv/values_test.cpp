// The values that MXNet's tests of distributed stores check, for each type of store that drops no
// push: workers push known values several times to keys of several sizes, with each way to update.
#include <algorithm>
#include <catch2/catch.hpp>

#include "kv.hpp"

namespace leeway::kv {
namespace {

constexpr int kRounds = 4, kTinyKeys = 600;
constexpr float kFirst = 1;

std::vector<std::pair<Key, Shape>> all_keys() {
  std::vector<std::pair<Key, Shape>> keys = {{"huge", {1100, 1000}}, {"odd", {3, 5, 7}}};
  for (int key = 0; key < kTinyKeys; ++key) keys.push_back({key, Shape{key % 3 + 1}});
  return keys;
}

/// How shards update, and the effect of gradients whose sum over the workers is `sum`.
struct Update {
  std::string name;
  void (*set)(Store&);
  float (*of)(float sum, float workers);
};
const Update kUpdates[] = {
    {"sum", [](Store& store) { store.set_optimizer(sum_gradients()); },
     [](float sum, float) { return sum; }},
    {"sgd", [](Store& store) { store.set_optimizer(sgd(0.5)); },
     [](float sum, float workers) { return -0.5f * sum / workers; }},
    {"updater", [](Store& store) { store.set_updater("subtract twice"); },
     [](float sum, float) { return -2 * sum; }},
};

/// Each worker pushes its number, from 1, in each round; all products are exact in floats.
void push_numbers(Store& store, const Update& update) {
  const auto keys = all_keys();
  std::vector<float> values(1100 * 1000, kFirst);
  for (const auto& [key, shape] : keys) store.init(key, {values.data(), shape});
  update.set(store);
  std::ranges::fill(values, static_cast<float>(store.rank() + 1));
  for (int round = 0; round < kRounds; ++round) {
    for (const auto& [key, shape] : keys) store.push(key, {values.data(), shape});
    store.end_iteration();
  }
}

template <class WeightsOf>
void check_values(const Update& update, std::uint32_t workers, WeightsOf weights_of) {
  const auto count = static_cast<float>(workers);
  const float expected = kFirst + kRounds * update.of(count * (count + 1) / 2, count);
  for (const auto& [key, shape] : all_keys()) {
    CAPTURE(key.name());
    const std::vector<float> weights = weights_of(key);
    REQUIRE(weights == std::vector<float>(static_cast<std::size_t>(shape.count()), expected));
  }
}

void register_subtract_twice() {
  register_updater("subtract twice", [](const UpdaterCall& call) {
    for (std::size_t i = 0; i < call.weights.size(); ++i) call.weights[i] -= 2 * call.gradient[i];
  });
}

TEST_CASE("known values arrive under each policy and with each way to update") {
  register_subtract_twice();
  const auto update = GENERATE(from_range(std::begin(kUpdates), std::end(kUpdates)));
  const plan::Consistency policy = GENERATE(as<plan::Consistency>(), plan::Bsp{}, plan::Asp{},
                                            plan::Ssp{2}, plan::Adaptive{1, 4}, plan::Automatic{});
  CAPTURE(update.name, policy.index());
  const Options options{.workers = 4, .consistency = policy};
  const Result result = run([&](Store& store) { push_numbers(store, update); }, options);
  REQUIRE(result.error == "");
  check_values(update, 4, [&](const Key& key) {
    const auto weights = result.weight(key.name());
    return std::vector<float>(weights.begin(), weights.end());
  });
}

TEST_CASE("known values arrive in a local store") {
  register_subtract_twice();
  const auto update = GENERATE(from_range(std::begin(kUpdates), std::end(kUpdates)));
  Store store = Store::create("local");
  push_numbers(store, update);
  check_values(update, 1, [&](const Key& key) { return store.get(key); });
}

}  // namespace
}  // namespace leeway::kv
