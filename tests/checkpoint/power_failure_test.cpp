// A power failure during any operation leaves the earlier checkpoints, and no half-written one.
#include <catch2/catch.hpp>

#include "core/text.hpp"
#include "sim/disk.hpp"
#include "tests/checkpoint/small_checkpoint.hpp"

namespace leeway::test {
namespace {

using checkpoint::Store;

/// A disk with the folder of a run.
struct RunDisk : sim::SimulatedDisk {
  RunDisk() {
    LW_CHECK(bool(make_folder("run")));
    LW_CHECK(bool(flush_folder(".")));
  }
};

}  // namespace

TEST_CASE("after a power failure, every visible checkpoint can be loaded, and none is lost") {
  const SmallCheckpoint small(2);
  // The number of operations of one checkpoint.
  RunDisk whole;
  REQUIRE(small.write(Store(whole, "run/checkpoints"), 1, 2));
  const std::uint64_t operations = whole.operations();
  REQUIRE(operations > 20);

  for (std::uint64_t failing = 0; failing <= operations + 8; ++failing) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      INFO("operation " << failing << ", seed " << seed);
      RunDisk disk;
      const Store store(disk, "run/checkpoints");
      for (const std::uint64_t number : {1, 2}) REQUIRE(small.write(store, number, 2));
      disk.fail_at(disk.operations() + failing);
      bool completed = false;
      try {
        completed = static_cast<bool>(small.write(store, 3, 2));
      } catch (const sim::PowerFailure&) {
      }
      Rng rng(seed);
      disk.restart(rng);
      const auto numbers = store.numbers();
      REQUIRE(numbers);
      CHECK(numbers->size() >= 2);
      CHECK(numbers->front() <= 2);
      if (completed) CHECK(*numbers == std::vector<std::uint64_t>{2, 3});
      for (const std::uint64_t number : *numbers) {
        const auto loaded = store.load(number, *small.model);
        INFO((loaded ? "" : loaded.error().text));
        REQUIRE(loaded);
        require_same(small, loaded->parameters);
      }
      // The run goes on after it.
      REQUIRE(small.write(store, numbers->back() + 1, 2));
    }
  }
}

TEST_CASE("every flipped bit is found") {
  const SmallCheckpoint small(2);
  for (const std::string name :
       {"weights-0.safetensors", "optimizer-1.safetensors", "plan.json", "manifest.json"})
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      RunDisk disk;
      const Store store(disk, "run/checkpoints");
      REQUIRE(small.write(store, 1));
      const std::string path = store.path(1) + "/" + name;
      const std::uint64_t bits = 8 * (*disk.read(path))->bytes().size();
      disk.flip(path, Rng(seed).below(bits));
      CHECK_FALSE(store.verify(1));
      CHECK_FALSE(store.load(1, *small.model));
    }
}

}  // namespace leeway::test
