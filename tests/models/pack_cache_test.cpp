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

/// Asks `cache`; what is packed begins with `mark`.
std::byte get(PackCache& cache, const PackCache::Key& key, std::uint64_t version, int mark) {
  const auto on = make_cpu_executor();
  return cache.get(key, version, *on, [&](std::byte* out) { *out = std::byte(mark); }).data()[0];
}

}  // namespace

TEST_CASE("many threads that want the same version get one pack between them", "[pack_cache]") {
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
          std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the others ask meanwhile
          *out = std::byte(version);
        }));
        // A pack that was still under way would be seen here.
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

TEST_CASE("only so many versions are kept, the latest", "[pack_cache]") {
  PackCache cache(2);
  for (int version = 1; version <= 3; ++version) get(cache, key(0, 1), version, version);
  CHECK(cache.packed() == 3);
  CHECK(get(cache, key(0, 1), 3, 9) == std::byte(3));
  CHECK(get(cache, key(0, 1), 2, 9) == std::byte(2));
  CHECK(cache.packed() == 3);
  CHECK(get(cache, key(0, 1), 1, 9) == std::byte(9));  // was dropped, and is packed again
  CHECK(cache.packed() == 4);
}

TEST_CASE("a version that was dropped stays with those who use it", "[pack_cache]") {
  PackCache cache(1);
  const auto on = make_cpu_executor();
  const Blob held = cache.get(key(0, 1), 1, *on, [](std::byte* out) { *out = std::byte(1); });
  CHECK_FALSE(held.unique());
  for (int version = 2; version < 50; ++version) get(cache, key(0, 1), version, 77);
  CHECK(held.unique());
  CHECK(held.data()[0] == std::byte(1));
}

TEST_CASE("parameters and forms are packed apart", "[pack_cache]") {
  PackCache cache(1);
  const std::vector<PackCache::Key> keys = {key(0, 1), key(1, 1), key(0, 2), key(0, 1, 16)};
  for (std::size_t i = 0; i < keys.size(); ++i)
    CHECK(get(cache, keys[i], 1, static_cast<int>(i)) == std::byte(i));
  for (std::size_t i = 0; i < keys.size(); ++i) CHECK(get(cache, keys[i], 1, 99) == std::byte(i));
  CHECK(cache.packed() == keys.size());
}

TEST_CASE("a packed blob is as large as its form", "[pack_cache]") {
  PackCache cache(1);
  const auto on = make_cpu_executor();
  CHECK(cache.get(key(0, 1, 1234), 1, *on, [](std::byte*) {}).size() == 1234);
}

TEST_CASE("when packing fails the next who asks packs", "[pack_cache]") {
  PackCache cache(1);
  const auto on = make_cpu_executor();
  const auto fails = [](std::byte*) { throw std::runtime_error("no"); };
  CHECK_THROWS(cache.get(key(0, 1), 1, *on, fails));
  CHECK(cache.packed() == 0);
  CHECK(get(cache, key(0, 1), 1, 5) == std::byte(5));
  CHECK(cache.packed() == 1);
}
