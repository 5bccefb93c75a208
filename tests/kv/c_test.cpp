// leeway/kv.h on a local store. launch_test runs the C and Python examples as workers.
#include "kv.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace {

using Catch::Matchers::Contains;

/// A store with "w", 2 x 3 ones.
struct OpenStore {
  explicit OpenStore(const leeway_kv_options* options = nullptr) {
    REQUIRE(leeway_kv_create("local", options, &kv) == LEEWAY_KV_OK);
    const std::vector<float> ones(6, 1.0f);
    REQUIRE(leeway_kv_init(kv, "w", ones.data(), shape, 2) == LEEWAY_KV_OK);
  }
  ~OpenStore() { leeway_kv_close(kv); }
  std::vector<float> pulled() {
    std::vector<float> values(6, 0.0f);
    CHECK(leeway_kv_pull(kv, "w", values.data(), shape, 2, nullptr) == LEEWAY_KV_OK);
    return values;
  }

  leeway_kv* kv = nullptr;
  const std::int64_t shape[2] = {2, 3};
};

TEST_CASE("C: pushes add, set replaces, and memory of the store is pushed") {
  OpenStore store;
  const std::vector<float> twos(6, 2.0f);
  CHECK(leeway_kv_push(store.kv, "w", twos.data(), store.shape, 2, nullptr) == LEEWAY_KV_OK);
  CHECK(store.pulled() == std::vector<float>(6, 3.0f));
  CHECK(leeway_kv_set(store.kv, "w", twos.data(), store.shape, 2, nullptr) == LEEWAY_KV_OK);
  CHECK(store.pulled() == twos);
  float* gradient = nullptr;
  REQUIRE(leeway_kv_gradient(store.kv, "w", &gradient) == LEEWAY_KV_OK);
  for (int i = 0; i < 6; ++i) gradient[i] = 5;
  CHECK(leeway_kv_push_gradient(store.kv, "w", nullptr) == LEEWAY_KV_OK);
  const float* weights = nullptr;
  REQUIRE(leeway_kv_view(store.kv, "w", &weights) == LEEWAY_KV_OK);
  CHECK(weights[5] == 7);
  std::vector<float> out(6);
  CHECK(leeway_kv_push_pull(store.kv, "w", twos.data(), out.data(), store.shape, 2, nullptr) ==
        LEEWAY_KV_OK);
  CHECK(out == std::vector<float>(6, 9.0f));
  CHECK(leeway_kv_barrier(store.kv) == LEEWAY_KV_OK);
  CHECK(leeway_kv_rank(store.kv) == 0);
  CHECK(leeway_kv_workers(store.kv) == 1);
  CHECK(leeway_kv_iterations(store.kv) >= 3);
  REQUIRE(leeway_kv_key_count(store.kv) == 1);
  CHECK(leeway_kv_key(store.kv, 0) == std::string("w"));
  CHECK(leeway_kv_key(store.kv, 1) == nullptr);
}

TEST_CASE("C: several keys are pushed and pulled in one call") {
  OpenStore store;
  const float one = 1;
  REQUIRE(leeway_kv_init(store.kv, "v", &one, nullptr, 0) == LEEWAY_KV_OK);
  REQUIRE(leeway_kv_set_optimizer(store.kv, "momentum(0.5)", 1) == LEEWAY_KV_OK);
  std::vector<float> w(6, 2.0f);
  double v = 3;
  const leeway_kv_tensor both[] = {{"w", w.data(), LEEWAY_KV_F32, store.shape, 2},
                                   {"v", &v, LEEWAY_KV_F64, nullptr, 0}};
  CHECK(leeway_kv_push_many(store.kv, both, 2, nullptr) == LEEWAY_KV_OK);
  CHECK(leeway_kv_push_many(store.kv, both, 2, nullptr) == LEEWAY_KV_OK);
  CHECK(leeway_kv_pull_many(store.kv, both, 2, nullptr) == LEEWAY_KV_OK);
  CHECK(w == std::vector<float>(6, 1 - 2 - (2 + 0.5f * 2)));
  CHECK(v == 1 - 3 - (3 + 0.5 * 3));
  const leeway_kv_tensor unknown{"u", &v, LEEWAY_KV_F64, nullptr, 0};
  CHECK(leeway_kv_push_many(store.kv, &unknown, 1, nullptr) == LEEWAY_KV_ERROR);
  CHECK_THAT(leeway_kv_error(), Contains("\"u\""));
}

TEST_CASE("C: elements of other types are converted") {
  OpenStore store;
  const std::vector<double> halves(6, 0.5);
  CHECK(leeway_kv_push_as(store.kv, "w", LEEWAY_KV_F64, halves.data(), store.shape, 2, nullptr) ==
        LEEWAY_KV_OK);
  std::vector<std::uint16_t> out(6);
  CHECK(leeway_kv_pull_as(store.kv, "w", LEEWAY_KV_F16, out.data(), store.shape, 2, nullptr) ==
        LEEWAY_KV_OK);
  CHECK(out == std::vector<std::uint16_t>(6, 0x3e00));  // 1.5
  CHECK(leeway_kv_set_as(store.kv, "w", LEEWAY_KV_F16, out.data(), store.shape, 2, nullptr) ==
        LEEWAY_KV_OK);
  const std::vector<std::uint16_t> ones(6, 0x3f80);
  CHECK(leeway_kv_push_pull_as(store.kv, "w", LEEWAY_KV_BF16, ones.data(), out.data(), store.shape,
                               2, nullptr) == LEEWAY_KV_OK);
  CHECK(out == std::vector<std::uint16_t>(6, 0x4020));  // 2.5
  CHECK(leeway_kv_init_as(store.kv, "v", 99, ones.data(), store.shape, 2) == LEEWAY_KV_ERROR);
  CHECK_THAT(leeway_kv_error(), Contains("element type 99: give LEEWAY_KV_F32"));
}

TEST_CASE("C: a handle is done after a wait, and calls its function once") {
  OpenStore store;
  std::vector<float> out(6);
  leeway_kv_handle* handle = nullptr;
  REQUIRE(leeway_kv_pull(store.kv, "w", out.data(), store.shape, 2, &handle) == LEEWAY_KV_OK);
  int calls = 0;
  CHECK(leeway_kv_then(
            handle, [](void* count) { ++*static_cast<int*>(count); }, &calls) == LEEWAY_KV_OK);
  CHECK(leeway_kv_wait(handle) == LEEWAY_KV_OK);
  CHECK(leeway_kv_done(handle) == 1);
  CHECK(calls == 1);
  leeway_kv_free(handle);
}

TEST_CASE("C: ranges cover each sample of an epoch once") {
  leeway_kv_options options = leeway_kv_default_options();
  options.samples = 10;
  options.batch = 4;
  options.epochs = 2;
  OpenStore store(&options);
  leeway_kv_range range;
  std::vector<int> counts(10);
  std::vector<std::size_t> sizes;
  while (leeway_kv_next_range(store.kv, &range) == LEEWAY_KV_OK) {
    std::int64_t iteration = -1;
    CHECK(leeway_kv_iteration(store.kv, &iteration) == LEEWAY_KV_OK);
    CHECK(iteration == static_cast<std::int64_t>(sizes.size()));
    sizes.push_back(range.count);
    for (std::size_t i = 0; i < range.count; ++i)
      ++counts.at(static_cast<std::size_t>(range.samples[i]));
  }
  CHECK(counts == std::vector<int>(10, 2));
  CHECK(sizes == std::vector<std::size_t>{4, 4, 2, 4, 4, 2});
  CHECK_THAT(leeway_kv_error(), Contains("all epochs are trained"));
}

TEST_CASE("C: an updater of the program gets its context") {
  float largest = 0;
  REQUIRE(leeway_kv_register_updater(
              "add twice",
              [](void* context, const char* key, std::int64_t first, const float* gradient,
                 float* weights, std::size_t count) {
                CHECK(key == std::string("w"));
                CHECK(first == 0);
                for (std::size_t i = 0; i < count; ++i) weights[i] += 2 * gradient[i];
                *static_cast<float*>(context) = weights[0];
              },
              &largest) == LEEWAY_KV_OK);
  OpenStore store;
  REQUIRE(leeway_kv_set_updater(store.kv, "add twice") == LEEWAY_KV_OK);
  const std::vector<float> ones(6, 1.0f);
  CHECK(leeway_kv_push(store.kv, "w", ones.data(), store.shape, 2, nullptr) == LEEWAY_KV_OK);
  CHECK(store.pulled() == std::vector<float>(6, 3.0f));
  CHECK(largest == 3);
}

TEST_CASE("C: misuse returns an error that says what to do") {
  leeway_kv* kv = nullptr;
  CHECK(leeway_kv_create("locale", nullptr, &kv) == LEEWAY_KV_ERROR);
  CHECK_THAT(leeway_kv_error(), Contains("give local, dist_sync"));
  CHECK(leeway_kv_create("dist_sync", nullptr, &kv) == LEEWAY_KV_ERROR);
  CHECK_THAT(leeway_kv_error(), Contains("leeway launch"));
  OpenStore store;
  float x = 0;
  CHECK(leeway_kv_pull(store.kv, "v", &x, nullptr, 0, nullptr) == LEEWAY_KV_ERROR);
  CHECK_THAT(leeway_kv_error(), Contains("not initialised"));
  CHECK(leeway_kv_pull(store.kv, "w", &x, nullptr, 0, nullptr) == LEEWAY_KV_ERROR);
  CHECK_THAT(leeway_kv_error(), Contains("its shape is 2x3"));
  CHECK(leeway_kv_pull(store.kv, "w", &x, nullptr, 2, nullptr) == LEEWAY_KV_ERROR);
  CHECK(leeway_kv_pull(store.kv, "w", &x, store.shape, -1, nullptr) == LEEWAY_KV_ERROR);
  CHECK_THAT(leeway_kv_error(), Contains("give a rank"));
  CHECK(leeway_kv_register_updater("", nullptr, nullptr) == LEEWAY_KV_ERROR);
  leeway_kv_close(nullptr);
  OpenStore other;
  CHECK(leeway_kv_set_optimizer(other.kv, "adagrade", 0) == LEEWAY_KV_ERROR);
  CHECK_THAT(leeway_kv_error(), Contains("set_optimizer: ") && Contains("adagrad"));
  CHECK(leeway_kv_set_optimizer(other.kv, "momentum(0.9,3)", 0) == LEEWAY_KV_ERROR);
  CHECK_THAT(leeway_kv_error(), Contains("does not have the numbers of momentum"));
}

}  // namespace
