// Checkpoints of nodes that share the folder of the program, and of nodes with disks of their own.
#include <catch2/catch.hpp>

#include "checkpoint/store.hpp"
#include "sim/disk.hpp"
#include "tests/checkpoint/small_checkpoint.hpp"
#include "tests/cluster/agents.hpp"
#include "tests/support/bits.hpp"
#include "tests/support/process.hpp"
#include "tests/support/weights.hpp"

namespace leeway::test {
namespace {

using Catch::Contains;

/// A plan, and the jobs of its runs with checkpoints in a folder of the program.
struct CheckpointJobs {
  CheckpointJobs() { plan.checkpoints.every = plan::EveryIterations{3}; }

  /// A run, or one that is resumed from a checkpoint.
  std::shared_ptr<const Job> job(std::optional<std::uint64_t> from = {}) const {
    JobOptions options{.checkpoints = store, .run = "this run"};
    if (from)
      options.resumed =
          std::make_shared<checkpoint::Checkpoint>(*store->load(*from, *job_of(plan)->model));
    return *make_job(plan, *load_data(plan.data, plan.seed), std::move(options));
  }

  TemporaryFolder temporary;
  const std::string folder = temporary / "checkpoints";
  std::shared_ptr<const checkpoint::Store> store =
      std::make_shared<const checkpoint::Store>(shared_disk(), folder, "this start");
  Plan plan = tiny_plan();
};

}  // namespace

TEST_CASE("nodes that share the folder of the program write checkpoints into it") {
  const auto net = std::make_shared<MemoryNet>();
  const RunningAgent agent(net);
  const CheckpointJobs jobs;
  REQUIRE(jobs.store->put_mark());
  Program program(net, {agent.name()}, jobs.job(), "shards=1");
  CHECK(program.run().end.samples_trained == 120);
  CHECK_THAT(program.log, !Contains("does not see"));
  const auto numbers = *jobs.store->numbers();
  REQUIRE(numbers.size() > 1);
  for (const std::uint64_t number : numbers) CHECK(jobs.store->verify(number));
  Program resumed(net, {agent.name()}, jobs.job(numbers.front()), "shards=1");
  CHECK(resumed.run().end.samples_trained == 120);
  CHECK(resumed.trained < 120);
}

TEST_CASE("a node with its own disk sends its checkpoints to the program, and reads them there") {
  const auto net = std::make_shared<MemoryNet>();
  const auto its_disk = std::make_shared<sim::SimulatedDisk>();
  const RunningAgent agent(net, "", its_disk);
  CheckpointJobs jobs;
  const bool copies = GENERATE(false, true);
  if (copies) jobs.plan.checkpoints.directory = jobs.folder;
  Program program(net, {agent.name()}, jobs.job(), "shards=1");
  CHECK(program.run().end.samples_trained == 120);
  CHECK_THAT(program.log, Contains("it sends its files of checkpoints to this program"));
  CHECK((program.log.find("keeps copies") != std::string::npos) == copies);
  const auto numbers = *jobs.store->numbers();
  REQUIRE(numbers.size() > 1);
  for (const std::uint64_t number : numbers) CHECK(jobs.store->verify(number));
  const checkpoint::Store copy(its_disk, jobs.folder);
  const auto copied = *copy.numbers();
  CHECK(copied == (copies ? numbers : std::vector<std::uint64_t>()));
  for (const std::uint64_t number : copied) CHECK(copy.verify(number));

  // The node has lost its disk.
  REQUIRE(its_disk->remove(folder_of(jobs.folder)));
  Program resumed(net, {agent.name()}, jobs.job(numbers.front()), "shards=1");
  CHECK(resumed.run().end.samples_trained == 120);
  CHECK(resumed.trained < 120);
}

TEST_CASE("a run with standby shards is resumed on other nodes, with the same bits") {
  const auto net = std::make_shared<MemoryNet>();
  const RunningAgent one(net), two(net);
  CheckpointJobs jobs;
  jobs.plan.replicas = 2;
  jobs.plan.consistency = plan::Bsp{};
  REQUIRE(jobs.store->put_mark());
  Program program(net, {one.name(), two.name()}, jobs.job(), "shards=1,standbys=2");
  const RunTotals whole = program.run();
  const auto numbers = *jobs.store->numbers();
  REQUIRE(numbers.size() > 1);
  Program resumed(net, {one.name(), two.name()}, jobs.job(numbers.front()), "shards=2,standbys=1");
  const RunTotals rest = resumed.run();
  CHECK(rest.end.samples_trained == 120);
  CHECK(resumed.trained < 120);
  // A standby that computes other results than its primary is reported.
  CHECK_THAT(resumed.log, !Contains("other results"));
  const auto job = job_of(jobs.plan);
  CHECK(same_bits(weights_of(*job, rest.weights), weights_of(*job, whole.weights)));
}

TEST_CASE("two nodes that share a disk with each other keep one copy of each checkpoint") {
  const auto net = std::make_shared<MemoryNet>();
  const auto their_disk = std::make_shared<sim::SimulatedDisk>();
  const RunningAgent one(net, "", their_disk), two(net, "", their_disk);
  CheckpointJobs jobs;
  jobs.plan.shards = 2;
  jobs.plan.checkpoints.directory = jobs.folder;
  Program program(net, {one.name(), two.name()}, jobs.job(), "shards=1+2");
  CHECK(program.run().end.samples_trained == 120);
  const auto numbers = *jobs.store->numbers();
  REQUIRE(numbers.size() > 1);
  const checkpoint::Store copy(their_disk, jobs.folder);
  CHECK(*copy.numbers() == numbers);
  for (const std::uint64_t number : numbers) {
    CHECK(jobs.store->verify(number));
    CHECK(copy.verify(number));
  }
}

TEST_CASE("a node resumes from the program's checkpoint, not from a different one on its disk") {
  const auto net = std::make_shared<MemoryNet>();
  const auto its_disk = std::make_shared<sim::SimulatedDisk>();
  const RunningAgent agent(net, "", its_disk);
  CheckpointJobs jobs;
  jobs.plan.consistency = plan::Bsp{};
  jobs.plan.checkpoints.directory = jobs.folder;
  jobs.plan.checkpoints.keep = 1000;  // all: several runs begin with the first one
  Program program(net, {agent.name()}, jobs.job(), "shards=1");
  CHECK(program.run().end.samples_trained == 120);
  const std::uint64_t number = jobs.store->numbers()->front();
  const std::string here = checkpoint::Store(its_disk, jobs.folder).path(number);
  const auto resume = [&] {
    Program resumed(net, {agent.name()}, jobs.job(number), "shards=1");
    const RunTotals& totals = resumed.run();
    CHECK(totals.end.samples_trained == 120);
    std::vector<std::byte> weights;
    for (const Blob& blob : totals.weights)
      weights.insert(weights.end(), blob.bytes().begin(), blob.bytes().end());
    return weights;
  };
  const auto intact = resume();
  SECTION("a damaged file") {
    its_disk->flip(here + "/weights-0.safetensors", 0);
    CHECK(resume() == intact);
  }
  SECTION("a missing manifest") {
    REQUIRE(its_disk->remove(here + "/manifest.json"));
    CHECK(resume() == intact);
  }
  SECTION("a checkpoint of another run with files of equal sizes") {
    CheckpointJobs others;
    others.plan = jobs.plan;
    others.plan.seed = 99;
    Program other(net, {agent.name()}, others.job(), "shards=1");
    CHECK(other.run().end.samples_trained == 120);
    REQUIRE(its_disk->remove(here));
    REQUIRE(its_disk->make_folder(here));
    const std::string there = others.store->path(number);
    const auto names = *disk().list(there);
    for (const std::string& name : names) {
      const auto content = *disk().read(there + "/" + name);
      REQUIRE(write_durably(*its_disk, here + "/" + name, content->text()));
    }
    CHECK(resume() == intact);
  }
}

TEST_CASE("a node does not mix copies of checkpoints with those of another run") {
  const auto net = std::make_shared<MemoryNet>();
  const auto its_disk = std::make_shared<sim::SimulatedDisk>();
  const RunningAgent agent(net, "", its_disk);
  CheckpointJobs jobs;
  jobs.plan.checkpoints.directory = jobs.folder;
  const SmallCheckpoint small(1);
  const checkpoint::Store copy(its_disk, jobs.folder);
  REQUIRE(copy.claim("another run"));
  REQUIRE(small.write(copy, 1));
  Program program(net, {agent.name()}, jobs.job(), "shards=1");
  CHECK_THAT(program.prepare(), Contains(jobs.folder + ": holds checkpoints of another run") &&
                                    Contains("--checkpoint-dir DIR"));
  CHECK(*copy.numbers() == std::vector<std::uint64_t>{1});
}

}  // namespace leeway::test
