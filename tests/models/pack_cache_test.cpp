#include "models/pack_cache.hpp"

#include <atomic>
#include <barrier>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "tests/models/support.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

PackCache::Key key(int parameter, std::uint64_t form, std::size_t bytes = 8) {
  return {parameter, {.id = form, .bytes = bytes}, {}};
}

/// Returns the first byte of the packed weights. If the cache packs them now, it is `mark`.
std::byte get(PackCache& cache, const PackCache::Key& key, std::uint64_t version, int mark) {
  const auto on = make_cpu_executor();
  return cache.get(key, version, *on, [&](std::byte* out) { *out = std::byte(mark); }).data()[0];
}

}  // namespace

TEST_CASE("concurrent requests for one version pack it once", "[pack_cache]") {
  constexpr int kThreads = 8;
  constexpr std::uint64_t kVersions = 20;
  PackCache cache(kVersions);
  std::atomic<int> packs{0};
  std::vector<std::vector<Blob>> got(kThreads);
  std::barrier together(kThreads);
  std::vector<std::jthread> threads;
  for (auto& mine : got)
    threads.emplace_back([&] {
      const auto on = make_cpu_executor();
      for (std::uint64_t version = 0; version < kVersions; ++version) {
        together.arrive_and_wait();
        mine.push_back(cache.get(key(0, 1), version, *on, [&](std::byte* out) {
          ++packs;
          std::this_thread::sleep_for(std::chrono::milliseconds(1));  // lets other threads request
          *out = std::byte(version);
        }));
        // Fails if get() returns before packing has finished.
        LW_CHECK(mine.back().data()[0] == std::byte(version), version);
      }
    });
  threads.clear();
  CHECK(packs == kVersions);
  CHECK(cache.packed() == kVersions);
  for (const auto& mine : got)
    for (std::size_t version = 0; version < kVersions; ++version)
      CHECK(mine[version].same_as(got[0][version]));
}

TEST_CASE("only the latest versions are kept", "[pack_cache]") {
  PackCache cache(2);
  for (int version = 1; version <= 3; ++version) get(cache, key(0, 1), version, version);
  CHECK(cache.packed() == 3);
  CHECK(get(cache, key(0, 1), 3, 9) == std::byte(3));
  CHECK(get(cache, key(0, 1), 2, 9) == std::byte(2));
  CHECK(cache.packed() == 3);
  CHECK(get(cache, key(0, 1), 1, 9) == std::byte(9));  // dropped, so it is packed again
  CHECK(cache.packed() == 4);
}

TEST_CASE("a dropped version stays valid for its users", "[pack_cache]") {
  PackCache cache(1);
  const auto on = make_cpu_executor();
  const Blob held = cache.get(key(0, 1), 1, *on, [](std::byte* out) { *out = std::byte(1); });
  CHECK_FALSE(held.unique());
  for (int version = 2; version < 50; ++version) get(cache, key(0, 1), version, 77);
  CHECK(held.unique());
  CHECK(held.data()[0] == std::byte(1));
}

TEST_CASE("each parameter and each form is packed separately", "[pack_cache]") {
  PackCache cache(1);
  const std::vector<PackCache::Key> keys = {key(0, 1), key(1, 1), key(0, 2), key(0, 1, 16)};
  for (std::size_t i = 0; i < keys.size(); ++i)
    CHECK(get(cache, keys[i], 1, static_cast<int>(i)) == std::byte(i));
  for (std::size_t i = 0; i < keys.size(); ++i) CHECK(get(cache, keys[i], 1, 99) == std::byte(i));
  CHECK(cache.packed() == keys.size());
}

TEST_CASE("a packed blob has the size of its form", "[pack_cache]") {
  PackCache cache(1);
  const auto on = make_cpu_executor();
  CHECK(cache.get(key(0, 1, 1234), 1, *on, [](std::byte*) {}).size() == 1234);
}

TEST_CASE("after a failure the next request packs", "[pack_cache]") {
  PackCache cache(1);
  const auto on = make_cpu_executor();
  const auto fails = [](std::byte*) { throw std::runtime_error("no"); };
  CHECK_THROWS(cache.get(key(0, 1), 1, *on, fails));
  CHECK(cache.packed() == 0);
  CHECK(get(cache, key(0, 1), 1, 5) == std::byte(5));
  CHECK(cache.packed() == 1);
}
