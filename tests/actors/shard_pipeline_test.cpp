// A shard that serves the stages of pipelines: their own blocks and their tied blocks.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "tests/actors/tied_scene.hpp"
#include "tests/support/bits.hpp"

namespace leeway::test {
namespace {

/// Three linear layers on three stages.
Plan chain_plan(std::uint32_t shards) {
  Plan plan = tiny_plan();
  plan.workers = 3;
  plan.pipeline = {.stages = 3, .split = "0-1,2-3,4"};
  plan.shards = shards;
  return plan;
}

std::vector<BlockId> blocks_of(const std::vector<msg::BlockData>& weights) {
  std::vector<BlockId> ids;
  for (const auto& block : weights) ids.push_back(block.block);
  std::sort(ids.begin(), ids.end());
  return ids;
}

/// The gradient of a block over all stages of a pipeline; for a tied table, the sum of the two tied
/// gradients.
Blob gradient_of_pipeline(const Job& job, BlockId id, WorkerId lead, std::int64_t iteration) {
  Blob sum;
  for (std::uint32_t stage = 0; stage < job.stages->count(); ++stage) {
    const auto& blocks = job.stages->share(stage).at[0].blocks;
    if (!std::binary_search(blocks.begin(), blocks.end(), id)) continue;
    const Blob own = gradient_of(job, id, job.stages->worker(lead, stage), iteration);
    sum = sum ? with_added(job, id, sum, own) : own;
  }
  return sum;
}

/// The final state of a shard whose workers train whole models on the samples of `piped`.
msg::SnapshotState train_whole(Plan plan, const Job& piped, std::int64_t iterations) {
  plan.workers = piped.stages->pipelines();
  plan.pipeline = {};
  ShardScene scene(job_of(plan));
  scene.admit_all();
  for (std::int64_t i = 0; i < iterations; ++i) {
    for (std::uint32_t w = 0; w < plan.workers; ++w) REQUIRE(scene.pull(WorkerId(w), i));
    for (std::uint32_t w = 0; w < plan.workers; ++w)
      for (std::uint32_t bucket = 0; bucket < scene.share_of(WorkerId(w)).buckets.size();
           ++bucket) {
        auto push = scene.push_of(WorkerId(w), i, bucket);
        for (auto& block : push.blocks)
          block.data =
              gradient_of_pipeline(piped, block.block, WorkerId(w * piped.stages->count()), i);
        scene.push(WorkerId(w), std::move(push));
      }
  }
  return scene.finish();
}

/// The final state of a shard whose stages push in a random order.
msg::SnapshotState train_in_stages(const std::shared_ptr<const Job>& job, std::int64_t iterations,
                                   std::uint64_t seed) {
  Rng rng(seed);
  ShardScene scene(job);
  scene.admit_all();
  for (std::int64_t i = 0; i < iterations; ++i) {
    std::vector<std::pair<WorkerId, std::uint32_t>> pushes;
    for (std::uint32_t w = 0; w < job->plan.workers; ++w) {
      REQUIRE(scene.pull(WorkerId(w), i));
      for (std::uint32_t bucket = 0; bucket < scene.share_of(WorkerId(w)).buckets.size(); ++bucket)
        pushes.emplace_back(w, bucket);
    }
    for (std::size_t left = pushes.size(); left > 1; --left)
      std::swap(pushes[left - 1], pushes[rng.below(left)]);
    for (const auto& [worker, bucket] : pushes) scene.push(worker, i, bucket);
  }
  return scene.finish();
}

void require_same(const msg::SnapshotState& a, const msg::SnapshotState& b) {
  const auto left = floats_of(a), right = floats_of(b);
  REQUIRE(left.size() == right.size());
  for (const auto& [id, floats] : left) {
    INFO("block " << id);
    REQUIRE(same_bits(floats, right.at(id)));
  }
  std::map<BlockId, Version> versions;
  for (const auto& block : a.blocks) versions[block.block] = block.version;
  for (const auto& block : b.blocks) REQUIRE(versions.at(block.block) == block.version);
}

}  // namespace

TEST_CASE("a stage pulls only its own blocks") {
  for (const auto& plan : {chain_plan(1), chain_plan(2), tied_plan(2), tied_plan(3)}) {
    const auto job = job_of(plan);
    for (std::uint32_t shard = 0; shard < plan.shards; ++shard) {
      ShardScene scene(job, shard);
      scene.admit_all();
      std::size_t blocks = 0;
      for (std::uint32_t w = 0; w < plan.workers; ++w) {
        const auto& share = scene.share_of(WorkerId(w));
        if (share.buckets.empty()) continue;
        REQUIRE(scene.pull(WorkerId(w), 0));
        REQUIRE(blocks_of(scene.weights(WorkerId(w), 0)) == share.blocks);
        blocks += share.blocks.size();
      }
      // Every block has an owner, and a tied one has two.
      const bool tied = job->model->borrowed_parameter(job->model->layers() - 1) != Model::kNone;
      REQUIRE(blocks == job->layout->blocks_of(ShardId(shard)).size() + (tied ? 1 : 0));
    }
  }
}

TEST_CASE("a stage without blocks on a shard is not admitted there, and its pull is refused") {
  const auto job = job_of(chain_plan(3));  // one block per shard
  for (std::uint32_t shard = 0; shard < 3; ++shard) {
    ShardScene scene(job, shard);
    scene.admit_all();
    int strangers = 0;
    for (std::uint32_t w = 0; w < 3; ++w) {
      if (!scene.share_of(WorkerId(w)).buckets.empty()) continue;
      ++strangers;
      REQUIRE_FALSE(scene.pull(WorkerId(w), 0));
      REQUIRE(scene.refusal(address_of(WorkerId(w))) ==
              "unknown worker: not admitted here, or evicted");
      scene.admit(WorkerId(w));
      REQUIRE(scene.refusal(kScheduler) ==
              concat("malformed: admit: worker ", w, " has no blocks here"));
    }
    REQUIRE(strangers == 2);
  }
}

TEST_CASE("a push must have the buckets of its stage, each with its blocks") {
  ShardScene scene(job_of(chain_plan(1)));
  scene.admit_all();
  const WorkerId stage(1);
  REQUIRE(scene.pull(stage, 0));
  const auto refused = [&](const std::function<void(msg::Push&)>& change) {
    auto push = scene.push_of(stage, 0, 0);
    change(push);
    return scene.push_unseen(stage, std::move(push));
  };
  REQUIRE(scene.job().layout->buckets(ShardId(0)).size() == 3);
  CHECK(refused([](msg::Push& push) { push.bucket_count = 3; }) ==
        "malformed: push: bucket_count is 3, this shard has 1 buckets");
  CHECK(refused([&](msg::Push& push) {
          push.blocks = scene.push_of(WorkerId(0), 0, 0).blocks;  // another stage's
        }).find("malformed: push: expected block ") == 0);
  CHECK(refused([](msg::Push& push) {
          push.blocks.clear();
        }).find("malformed: push: bucket 0 has ") == 0);
  CHECK(scene.applied(stage).empty());
  scene.push(stage, 0, 0);
  CHECK(scene.applied(stage) == std::vector<std::uint32_t>{0});
  CHECK(scene.acknowledged(stage) == std::vector<std::uint32_t>{0});
}

TEST_CASE("tied gradients sum to the bits of one stage, in any order of arrival") {
  Plan plan = tied_plan(2);
  plan.optimizer = {0.05, 1e-3, plan::Adam{}};
  plan.lr_schedule.kind = plan::Cosine{};  // depends on the samples, which count once
  for (const std::uint32_t stages : {2u, 3u}) {
    plan.pipeline.stages = plan.workers = stages;
    const auto job = job_of(plan);
    const auto whole = train_whole(plan, *job, 5);
    for (std::uint64_t seed = 1; seed <= 10; ++seed)
      require_same(train_in_stages(job, 5, seed), whole);
  }
}

TEST_CASE("a bsp round of three pipelines equals one of three workers, to the bit") {
  Plan plan = tied_plan(2, 3);
  plan.consistency = plan::Bsp{};
  plan.optimizer = {0.05, 1e-3, plan::Momentum{0.9}};
  plan.lr_schedule.kind = plan::Cosine{};
  const auto job = job_of(plan);
  const auto whole = train_whole(plan, *job, 4);
  for (std::uint64_t seed = 1; seed <= 10; ++seed)
    require_same(train_in_stages(job, 4, seed), whole);
}

TEST_CASE("a tied gradient is neither applied nor acknowledged before the other arrives") {
  ShardScene scene(job_of(tied_plan(2)));
  scene.admit_all();
  const std::uint32_t of_first = tied_bucket(scene, kFirst), of_last = tied_bucket(scene, kLast);
  REQUIRE((scene.pull(kFirst, 0) && scene.pull(kLast, 0)));
  scene.push(kLast, 0, of_last);
  scene.push(kLast, 0, of_last);  // again, after a broken link
  CHECK(scene.applied(kLast).empty());
  CHECK(scene.acknowledged(kLast).empty());
  scene.push(kFirst, 0, of_first);
  CHECK(scene.applied(kLast) == std::vector{of_last});
  CHECK(scene.acknowledged(kLast) == std::vector{of_last});
  CHECK(scene.acknowledged(kFirst) == std::vector{of_first});
  scene.push(kLast, 0, of_last);
  CHECK(scene.acknowledged(kLast) == std::vector{of_last});
  CHECK(scene.applied(kLast) == std::vector{of_last});
}

TEST_CASE("a pull waits for the push of the stage that shares a block with it") {
  ShardScene scene(job_of(tied_plan(3)));
  scene.admit_all();
  const WorkerId first(0), middle(1), last(2);
  for (const WorkerId worker : {first, middle, last}) REQUIRE(scene.pull(worker, 0));
  scene.push_all(last, 0);
  CHECK_FALSE(scene.pull(last, 1));
  scene.push_all(middle, 0);
  CHECK(scene.pull(middle, 1));  // has no tied block
  CHECK_FALSE(scene.answered(last, 1));
  for (std::uint32_t bucket = 0; bucket + 1 < scene.share_of(first).buckets.size(); ++bucket)
    scene.push(first, 0, bucket);
  CHECK_FALSE(scene.answered(last, 1));
  scene.push(first, 0, static_cast<std::uint32_t>(scene.share_of(first).buckets.size()) - 1);
  CHECK(scene.answered(last, 1));
  CHECK(scene.pull(first, 1));
  // Both compute on the same version of the table.
  const BlockId table = scene.share_of(last).buckets[tied_bucket(scene, last)].blocks[0];
  for (const WorkerId worker : {first, last})
    for (const auto& block : scene.weights(worker, 1))
      if (block.block == table) CHECK(block.version == Version(1));
}

TEST_CASE("a pull that waited for another stage is answered while min_clock stays") {
  ShardScene scene(job_of(tied_plan(2, 2)));
  scene.admit_all();
  REQUIRE((scene.pull(kFirst, 0) && scene.pull(kLast, 0)));
  scene.push_all(kLast, 0);
  CHECK_FALSE(scene.pull(kLast, 1));
  scene.push_all(kFirst, 0);
  CHECK(scene.answered(kLast, 1));
  CHECK(scene.shard().clocks().min_clock() == Clock(0));
}

TEST_CASE("a push is refused while a pull for its iteration would wait") {
  ShardScene scene(job_of(tied_plan(2)));
  scene.admit_all();
  REQUIRE((scene.pull(kFirst, 0) && scene.pull(kLast, 0)));
  scene.push_all(kLast, 0);
  CHECK(
      scene.push_unseen(kLast, scene.push_of(kLast, 1, 0)) ==
      "malformed: push: iteration 1 may not have started: a stage that shares a block with it has "
      "pushed 0");
}

TEST_CASE(
    "when one tied gradient is empty, only the other is applied; when both are empty, nothing is") {
  ShardScene scene(job_of(tied_plan(2)));
  scene.admit_all();
  const std::uint32_t of_first = tied_bucket(scene, kFirst), of_last = tied_bucket(scene, kLast);
  const BlockId table = scene.share_of(kFirst).buckets[of_first].blocks[0];
  const auto others_of = [&](std::int64_t iteration) {
    push_others(scene, kFirst, iteration);
    push_others(scene, kLast, iteration);
  };
  const auto pull = [&](std::int64_t iteration) {
    REQUIRE(scene.pull(kFirst, iteration));
    REQUIRE(scene.pull(kLast, iteration));
  };
  pull(0);
  scene.push_empty(kFirst, 0, of_first);
  CHECK(scene.acknowledged(kFirst).empty());
  scene.push(kLast, 0, of_last);
  CHECK(scene.acknowledged(kFirst) == std::vector{of_first});
  CHECK(scene.acknowledged(kLast) == std::vector{of_last});
  others_of(0);
  pull(1);
  scene.push(kFirst, 1, of_first);
  scene.push_empty(kLast, 1, of_last);
  others_of(1);
  pull(2);
  scene.push_empty(kFirst, 2, of_first);
  scene.push_empty(kLast, 2, of_last);
  others_of(2);
  CHECK(scene.applied(kFirst).size() == 3 * scene.share_of(kFirst).buckets.size());
  CHECK(version_of(scene.finish(), table) == Version(2));  // the checkers add the gradients up
}

TEST_CASE(
    "in a pipeline that is never emptied, each tied gradient is an update, and samples count "
    "once") {
  Plan plan = tied_plan(2);
  plan.pipeline.schedule = "weight_stashing";
  plan.lr_schedule.kind = plan::Step{10.0 / 72, 1e-30};  // no weight moves after ten samples
  const auto job = job_of(plan);
  REQUIRE(job->data.train->size() == 72);
  ShardScene scene(job);
  scene.admit_all();
  const std::uint32_t of_first = tied_bucket(scene, kFirst), of_last = tied_bucket(scene, kLast);
  const BlockId table = scene.share_of(kFirst).buckets[of_first].blocks[0];
  // The first stage pulls one iteration ahead.
  REQUIRE(scene.pull(kFirst, 1, 0));
  REQUIRE(scene.pull(kLast, 0, 0));
  std::map<BlockId, std::vector<float>> after;
  for (std::int64_t i = 0; i < 8; ++i) {
    scene.push(kLast, i, of_last);
    CHECK(scene.acknowledged(kLast) == std::vector{of_last});
    push_others(scene, kLast, i);
    scene.acknowledged(kLast);
    CHECK(scene.pull(kLast, i + 1));  // does not wait for the other stage
    const auto& before = scene.weights(kLast, i);
    const auto& now = scene.weights(kLast, i + 1);
    for (std::size_t b = 0; b < now.size(); ++b)
      if (now[b].block == table) {
        CHECK(now[b].version == Version(2 * i + 1));
        const bool moved =
            !same_bits(floats_of(std::vector{before[b].data}), floats_of(std::vector{now[b].data}));
        CHECK(moved ==
              (i <= 5));  // by the first stage's push of iteration i - 1 or the last's of i
      }
    scene.push_all(kFirst, i);
    CHECK(scene.pull(kFirst, i + 2, i + 1));
  }
  scene.finish();
}

TEST_CASE("separate updates of tied gradients decay a table as much as one update") {
  constexpr double kRate = 0.5, kDecay = 0.1;
  for (const char* schedule : {"1f1b", "weight_stashing"}) {
    INFO(schedule);
    Plan plan = tied_plan(2);
    plan.pipeline.schedule = schedule;
    plan.optimizer = {kRate, kDecay, plan::Sgd{}};
    ShardScene scene(job_of(plan));
    scene.admit_all();
    REQUIRE(scene.pull(kFirst, 0));
    REQUIRE(scene.pull(kLast, 0));
    for (const WorkerId stage : {kFirst, kLast}) {
      auto push = scene.push_of(stage, 0, tied_bucket(scene, stage));
      for (auto& block : push.blocks)
        std::fill_n(block.data.mutable_floats(), block.shape.count(), 0.0f);
      scene.push(stage, std::move(push));
      push_others(scene, stage, 0);
    }
    REQUIRE(scene.pull(kLast, 1));
    const BlockId table = scene.share_of(kFirst).buckets[tied_bucket(scene, kFirst)].blocks[0];
    const auto of_table = [&](std::int64_t iteration) {
      for (const auto& block : scene.weights(kLast, iteration))
        if (block.block == table) return floats_of(std::vector{block.data});
      LW_CHECK(false, iteration);
    };
    const auto before = of_table(0), after = of_table(1);
    for (std::size_t i = 0; i < before.size(); ++i)
      REQUIRE(std::abs(after[i] - before[i] * (1 - kRate * kDecay)) <= 1e-3 * std::abs(before[i]));
  }
}

TEST_CASE("a snapshot holds both tied gradients of an iteration or neither") {
  // One pipeline is ahead; the gradients of the other arrive after the fork.
  ShardScene scene(job_of(tied_plan(2, 2)));
  scene.admit_all();
  const WorkerId ahead[] = {WorkerId(0), WorkerId(1)}, behind[] = {WorkerId(2), WorkerId(3)};
  const std::uint32_t tied = tied_bucket(scene, behind[0]);
  const BlockId table = scene.share_of(behind[0]).buckets[tied].blocks[0];
  scene.tell(kScheduler, msg::Snapshot{1, {Iteration(1), Iteration(1)}});
  REQUIRE(scene.sent_to<msg::SnapshotVote>(kScheduler).size() == 1);
  for (const auto* pipeline : {ahead, behind})
    for (int i = 0; i < 2; ++i) REQUIRE(scene.pull(pipeline[i], 0));
  for (const WorkerId worker : ahead) scene.push_all(worker, 0);
  for (const WorkerId worker : ahead) REQUIRE(scene.pull(worker, 1));
  scene.push_all(ahead[1], 1);
  scene.push_all(behind[1], 0);
  scene.push_all(ahead[0], 1);  // forks
  CHECK(scene.sent_to<msg::SnapshotState>(kMonitor).empty());
  scene.push_all(behind[0], 0);
  const auto snapshot = scene.sent_to<msg::SnapshotState>(kMonitor);
  REQUIRE(snapshot.size() == 1);  // the checkers compare it with the pushes
  CHECK(version_of(snapshot[0], table) == Version(2));
  CHECK(version_of(scene.finish(), table) == Version(3));
}

}  // namespace leeway::test
