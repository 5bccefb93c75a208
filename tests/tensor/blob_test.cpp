#include "tensor/blob_pool.hpp"

#include <rapidcheck/catch.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "core/rng.hpp"

using namespace leeway;

namespace {

void fill(Blob& blob, std::uint8_t value) {
  if (blob.size() > 0) std::memset(blob.mutable_data(), value, blob.size());
}

bool holds(const Blob& blob, std::uint8_t value) {
  for (const std::byte byte : blob.bytes())
    if (byte != std::byte{value}) return false;
  return true;
}

}  // namespace

TEST_CASE("a blob has the requested size and is aligned to 64 bytes") {
  rc::prop("size and alignment", [] {
    const auto size = *rc::gen::inRange<std::size_t>(0, 200'000);
    Blob blob = Blob::allocate(size);
    RC_ASSERT(bool(blob));
    RC_ASSERT(blob.size() == size);
    RC_ASSERT(reinterpret_cast<std::uintptr_t>(blob.data()) % 64 == 0u);
    RC_ASSERT(blob.device() == Device{});
    fill(blob, 0x5a);  // the address sanitizer checks that every byte is writable
    RC_ASSERT(holds(blob, 0x5a));
  });
}

TEST_CASE("blobs in use never overlap") {
  std::vector<Blob> blobs;
  for (std::size_t i = 0; i < 200; ++i) {
    blobs.push_back(Blob::allocate(1 + i * 13));
    fill(blobs.back(), static_cast<std::uint8_t>(i));
  }
  for (std::size_t i = 0; i < blobs.size(); ++i)
    CHECK(holds(blobs[i], static_cast<std::uint8_t>(i)));
}

TEST_CASE("a default blob is null, and a blob of zero bytes is empty but not null") {
  const Blob none;
  CHECK_FALSE(none);
  CHECK(none.size() == 0);
  CHECK(none.data() == nullptr);
  CHECK(none.bytes().empty());
  CHECK_FALSE(none.unique());
  const Blob empty = Blob::allocate(0);
  CHECK(empty);
  CHECK(empty.size() == 0);
  CHECK(empty.bytes().empty());
  CHECK(empty.unique());
  CHECK_FALSE(empty.same_as(none));
  CHECK_FALSE(empty.same_as(Blob::allocate(0)));
}

TEST_CASE("Blob::floats takes a count of floats") {
  Blob blob = Blob::floats(3);
  CHECK(blob.size() == 12);
  blob.mutable_floats()[2] = 1.5f;
  CHECK(blob.as_floats()[2] == 1.5f);
}

TEST_CASE("copies share the bytes, and the last copy is unique") {
  Blob first = Blob::floats(4);
  CHECK(first.unique());
  Blob second = first;
  CHECK(second.same_as(first));
  CHECK(second.data() == first.data());
  CHECK_FALSE(first.unique());
  CHECK_FALSE(second.unique());
  const Blob third = std::move(second);
  CHECK_FALSE(second);  // moved from
  CHECK_FALSE(first.unique());
  first.reset();
  CHECK_FALSE(first);
  CHECK(third.unique());
}

TEST_CASE("assignment releases the old bytes, and self-assignment keeps them") {
  Blob one = Blob::allocate(100);
  Blob two = Blob::allocate(100);
  const Blob also_two = two;
  two = one;
  CHECK(also_two.unique());
  CHECK(two.same_as(one));
  const Blob& alias = two;
  two = alias;
  CHECK(two.same_as(one));
  CHECK_FALSE(two.unique());
  one = Blob();
  CHECK(two.unique());
}

TEST_CASE("the second allocation of a size makes no system allocation") {
  for (const std::size_t size : {1u, 64u, 65u, 1000u, 4096u, 100'000u, 4u << 20}) {
    Blob::allocate(size).reset();
    const auto before = host_pool_counts();
    const Blob again = Blob::allocate(size);
    const auto after = host_pool_counts();
    CHECK(after.system_allocations == before.system_allocations);
    CHECK(after.reuses == before.reuses + 1);
  }
}

TEST_CASE("similar sizes reuse each other's memory and waste at most a fifth of it") {
  rc::prop("size classes", [] {
    const auto size = *rc::gen::inRange<std::size_t>(257, 1 << 20);
    const auto before = host_pool_counts().bytes_in_use;
    const Blob blob = Blob::allocate(size);
    const auto held = host_pool_counts().bytes_in_use - before;
    RC_ASSERT(held >= size);
    RC_ASSERT(held - size <= held / 5);
  });
  Blob::allocate(1000).reset();
  const auto before = host_pool_counts();
  const Blob near = Blob::allocate(1001);
  CHECK(host_pool_counts().system_allocations == before.system_allocations);
}

TEST_CASE("the pool counts the bytes in use and the bytes kept for reuse") {
  const auto before = host_pool_counts();
  Blob blob = Blob::allocate(1 << 16);
  const Blob copy = blob;
  auto now = host_pool_counts();
  CHECK(now.bytes_in_use == before.bytes_in_use + (1 << 16));
  blob.reset();
  CHECK(host_pool_counts().bytes_in_use == now.bytes_in_use);  // the copy holds it
  const auto kept = now.bytes_kept;
  { const Blob last = std::move(const_cast<Blob&>(copy)); }
  now = host_pool_counts();
  CHECK(now.bytes_in_use == before.bytes_in_use);
  CHECK(now.bytes_kept == kept + (1 << 16));
}

TEST_CASE("random allocations, copies and releases do not change a held blob") {
  rc::prop("a blob keeps its bytes while it is held", [](std::uint64_t seed) {
    Rng rng(seed);
    std::deque<std::pair<Blob, std::uint8_t>> held;
    for (int i = 0; i < 200; ++i) {
      const auto choice = rng.below(4);
      if (choice == 0 || held.empty()) {
        const auto value = static_cast<std::uint8_t>(rng.next());
        held.emplace_back(Blob::allocate(rng.below(2000)), value);
        fill(held.back().first, value);
      } else if (choice == 1) {
        held.push_back(held[rng.below(held.size())]);
      } else {
        const auto at = rng.below(held.size());
        RC_ASSERT(holds(held[at].first, held[at].second));
        std::swap(held[at], held.back());
        held.pop_back();
      }
    }
    for (const auto& [blob, value] : held) RC_ASSERT(holds(blob, value));
  });
}

TEST_CASE("threads allocate, share and release blobs concurrently") {
  constexpr int kThreads = 8;
  constexpr int kRounds = 2000;
  std::mutex mutex;
  std::deque<std::pair<Blob, std::uint8_t>> shared;  // passed between threads
  std::atomic<int> wrong{0};
  const auto before = host_pool_counts();
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        Rng rng = Rng::stream(1, static_cast<std::uint64_t>(t));
        for (int i = 0; i < kRounds; ++i) {
          const auto value = static_cast<std::uint8_t>(rng.next());
          Blob mine = Blob::allocate(1 + rng.below(3000));
          fill(mine, value);
          const std::lock_guard lock(mutex);
          shared.emplace_back(mine, value);
          shared.emplace_back(std::move(mine), value);
          for (int take = 0; take < 2 && shared.size() > 16; ++take) {
            const auto [blob, expected] = std::move(shared.front());
            shared.pop_front();
            wrong += holds(blob, expected) ? 0 : 1;
          }
        }
      });
  }
  CHECK(wrong == 0);
  shared.clear();
  const auto after = host_pool_counts();
  CHECK(after.bytes_in_use == before.bytes_in_use);
  // At most 16 blobs and a few per thread are held at once, so nearly all allocations are reuses.
  CHECK(after.reuses - before.reuses > kThreads * kRounds / 2);
}

TEST_CASE("a unique holder may overwrite bytes that former holders have read") {
  // unique() is the only synchronisation: the thread sanitizer would report a race.
  Blob blob = Blob::allocate(256);
  for (int round = 0; round < 200; ++round) {
    const auto value = static_cast<std::uint8_t>(round);
    fill(blob, value);
    bool right = false;
    std::jthread reader([copy = blob, value, &right]() mutable {
      right = holds(copy, value);
      copy.reset();
    });
    while (!blob.unique()) std::this_thread::yield();
    fill(blob, static_cast<std::uint8_t>(value + 1));
    reader.join();
    REQUIRE(right);
  }
}
