// Checkpoints in two places: each place holds them after the loss of the other one.
#include <catch2/catch.hpp>

#include "core/copied_files.hpp"
#include "core/text.hpp"
#include "sim/disk.hpp"
#include "tests/checkpoint/small_checkpoint.hpp"

namespace leeway::test {
namespace {

using Catch::Contains;
using checkpoint::Store;

std::shared_ptr<sim::SimulatedDisk> run_disk() {
  auto disk = std::make_shared<sim::SimulatedDisk>();
  LW_CHECK(bool(disk->make_folder("run")));
  LW_CHECK(bool(disk->flush_folder(".")));
  return disk;
}

/// Two disks with the checkpoints of one run.
struct TwoDisks {
  std::shared_ptr<sim::SimulatedDisk> first = run_disk(), second = run_disk();
  Store store{std::make_shared<CopiedFiles>(std::vector<std::shared_ptr<Files>>{first, second}),
              "run/checkpoints"};

  Store on(const std::shared_ptr<sim::SimulatedDisk>& disk) const {
    return {disk, "run/checkpoints"};
  }
};

/// All visible checkpoints of a store can be loaded. Returns their numbers.
std::vector<std::uint64_t> intact(const Store& store, const SmallCheckpoint& small) {
  const auto numbers = store.numbers();
  LW_CHECK(bool(numbers));
  for (const std::uint64_t number : *numbers) {
    const auto loaded = store.load(number, *small.model);
    INFO((loaded ? "" : loaded.error().text));
    REQUIRE(loaded);
    require_same(small, loaded->parameters);
  }
  return *numbers;
}

}  // namespace

TEST_CASE("each place has every checkpoint, and the old ones are removed from both") {
  const SmallCheckpoint small(2);
  TwoDisks disks;
  for (const std::uint64_t number : {1, 2, 3}) REQUIRE(small.write(disks.store, number, 2));
  for (const auto& disk : {disks.first, disks.second}) {
    CHECK(intact(disks.on(disk), small) == std::vector<std::uint64_t>{2, 3});
    CHECK(disk->list("run/checkpoints")->size() == 2);
  }
}

TEST_CASE("remains at the second place only are removed with the next checkpoint") {
  const SmallCheckpoint small(2);
  TwoDisks disks;
  REQUIRE(small.write(disks.on(disks.second), 1));               // a complete checkpoint
  REQUIRE(disks.second->make_folder("run/checkpoints/000002"));  // remains of another
  REQUIRE(small.write(disks.on(disks.first), 3));
  REQUIRE(small.write(disks.store, 4, 2));
  CHECK(intact(disks.on(disks.first), small) == std::vector<std::uint64_t>{3, 4});
  CHECK(*disks.second->list("run/checkpoints") == std::vector<std::string>{"000004"});
}

TEST_CASE("checkpoints that crashes have left are removed before the next one is complete") {
  struct NoRename final : sim::SimulatedDisk {
    Status rename(const std::string& from, const std::string& to) override {
      if (fails && to.ends_with(checkpoint::kManifestFile))
        return Error{to + ": cannot be created"};
      return SimulatedDisk::rename(from, to);
    }
    bool fails = false;
  };
  const SmallCheckpoint small(2);
  const auto disk = std::make_shared<NoRename>();
  const Store store(std::shared_ptr<Files>(disk), "run/checkpoints");
  REQUIRE(disk->make_folder("run"));
  for (const std::uint64_t number : {1, 2, 3, 4}) REQUIRE(small.write(store, number, 10));
  disk->fails = true;
  CHECK_FALSE(small.write(store, 5, 2));
  CHECK(*store.numbers() == std::vector<std::uint64_t>{3, 4});
}

TEST_CASE("a full second place fails the checkpoint, and leaves the earlier ones in both") {
  struct FullDisk final : sim::SimulatedDisk {
    Expected<std::unique_ptr<Writer>> create(const std::string& path) override {
      if (full) return Error{path + ": cannot be created: No space left on device"};
      return SimulatedDisk::create(path);
    }
    bool full = false;
  };
  const SmallCheckpoint small(2);
  const auto first = run_disk();
  const auto second = std::make_shared<FullDisk>();
  const Store store = Store(std::shared_ptr<Files>(first), "run/checkpoints").with_copies({second});
  REQUIRE(second->make_folder("run"));
  REQUIRE(small.write(store, 1));
  second->full = true;
  const Status failed = small.write(store, 2);
  REQUIRE_FALSE(failed);
  CHECK_THAT(failed.error().text, Contains("No space left"));
  second->full = false;
  REQUIRE(small.write(store, 3));
  for (const auto& disk : {first, std::shared_ptr<sim::SimulatedDisk>(second)}) {
    CHECK(intact({std::shared_ptr<Files>(disk), "run/checkpoints"}, small) ==
          std::vector<std::uint64_t>{1, 3});
    CHECK(disk->list("run/checkpoints")->size() == 2);
  }
}

TEST_CASE("after a power failure at either place, both hold all earlier checkpoints") {
  const SmallCheckpoint small(2);
  TwoDisks whole;
  REQUIRE(small.write(whole.store, 1, 2));
  const std::uint64_t operations = whole.second->operations();
  REQUIRE(operations > 20);
  for (const bool second_fails : {false, true})
    for (std::uint64_t failing = 0; failing <= operations + 8; ++failing)
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        INFO("operation " << failing << ", seed " << seed << ", second place " << second_fails);
        TwoDisks disks;
        for (const std::uint64_t number : {1, 2}) REQUIRE(small.write(disks.store, number, 2));
        const auto& faulty = second_fails ? disks.second : disks.first;
        const auto& other = second_fails ? disks.first : disks.second;
        faulty->fail_at(faulty->operations() + failing);
        bool completed = false;
        try {
          completed = static_cast<bool>(small.write(disks.store, 3, 2));
        } catch (const sim::PowerFailure&) {
        }
        Rng rng(seed);
        faulty->restart(rng);
        for (const auto& disk : {faulty, other}) {
          const auto numbers = intact(disks.on(disk), small);
          CHECK(numbers.size() >= 2);
          CHECK(numbers.front() <= 2);
          if (completed) CHECK(numbers == std::vector<std::uint64_t>{2, 3});
        }
        REQUIRE(small.write(disks.store, 4, 2));
        CHECK(intact(disks.on(disks.second), small).back() == 4);
      }
}

TEST_CASE("the first checkpoint in a folder without a claim claims it") {
  const SmallCheckpoint small(1);
  const auto disk = run_disk();
  const Store store(disk, "run/checkpoints", "a start");
  CHECK_FALSE(store.owner());
  REQUIRE(small.write(store, 1));
  REQUIRE(store.owner());
  CHECK(store.owner()->run == "small");
  CHECK(store.owner()->writer == "a start");
}

TEST_CASE("a damaged claim hides no checkpoint, and the next checkpoint replaces it") {
  const SmallCheckpoint small(1);
  const auto disk = run_disk();
  const Store store(disk, "run/checkpoints", "a start");
  REQUIRE(small.write(store, 1));
  const std::string path = "run/checkpoints/run";
  const auto claim = disk->read(path);
  REQUIRE(claim);
  const std::string whole((*claim)->text());
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    REQUIRE(write_durably(*disk, path, damaged));
    INFO(at);
    const auto owner = store.owner();
    REQUIRE_FALSE(owner);
    CHECK_THAT(owner.error().text, Contains(path + ": is damaged"));
    CHECK(intact(store, small) == std::vector<std::uint64_t>{1});
  }
  REQUIRE(small.write(store, 2));
  CHECK(store.owner()->run == "small");
}

TEST_CASE("a store whose folder another start of the run has claimed changes nothing") {
  const SmallCheckpoint small(1);
  const auto disk = run_disk();
  const Store first(disk, "run/checkpoints", "first start");
  REQUIRE(first.claim("small"));
  REQUIRE(small.write(first, 1));
  const Store second(disk, "run/checkpoints", "second start");
  REQUIRE(second.claim("small"));
  const Status refused = small.write(first, 2);
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().text, Contains("another process writes checkpoints of the run small"));
  CHECK_FALSE(first.remove(1));
  CHECK(intact(second, small) == std::vector<std::uint64_t>{1});
  REQUIRE(small.write(second, 2));
}

}  // namespace leeway::test
