#include "tensor/foreign_blob.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "core/check.hpp"
#include "tensor/blob_pool.hpp"

using namespace leeway;

namespace {

/// Owns the memory and counts its releases.
struct Owner {
  alignas(64) std::byte bytes[256]{};
  std::atomic<int> releases{0};
  Blob blob() {
    return foreign_blob(bytes, [this] { ++releases; });
  }
};

}  // namespace

TEST_CASE("a foreign blob is read in place") {
  Owner owner;
  owner.bytes[255] = std::byte{9};
  const Blob blob = owner.blob();
  REQUIRE(blob);
  CHECK(blob.data() == owner.bytes);
  CHECK(blob.size() == 256);
  CHECK(blob.bytes()[255] == std::byte{9});
  CHECK(blob.device() == Device{});
  CHECK(blob.fences() == nullptr);
  CHECK(blob.on_host().same_as(blob));
}

TEST_CASE("foreign memory is released once, with its last reference") {
  Owner owner;
  {
    Blob first = owner.blob();
    Blob second = first;
    Blob third = std::move(second);
    first.reset();
    CHECK(owner.releases == 0);
    third = Blob();
    CHECK(owner.releases == 1);
  }
  CHECK(owner.releases == 1);
  std::vector<std::jthread> threads;
  {
    const Blob blob = owner.blob();
    for (int t = 0; t < 8; ++t) threads.emplace_back([copy = blob]() mutable { copy.reset(); });
  }
  threads.clear();
  CHECK(owner.releases == 2);
}

TEST_CASE("foreign memory is not writable, even through its only reference") {
  Owner owner;
  Blob blob = owner.blob();
  CHECK_FALSE(blob.unique());
  CHECK_THROWS_AS(blob.mutable_data(), CheckFailed);
  CHECK_THROWS_AS(blob.mutable_floats(), CheckFailed);
}

TEST_CASE("the host pool does not count foreign memory") {
  Owner owner;
  const auto before = host_pool_counts();
  owner.blob().reset();
  const auto after = host_pool_counts();
  CHECK(after.bytes_in_use == before.bytes_in_use);
  CHECK(after.bytes_kept == before.bytes_kept);
  CHECK_THROWS_AS(foreign_blob(std::span(owner.bytes).subspan(1), nullptr), CheckFailed);
}
