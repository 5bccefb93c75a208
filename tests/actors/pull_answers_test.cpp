#include "actors/shard/pull_answers.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/actors/shard_components.hpp"

namespace leeway::test {
namespace {

/// One shard with three buckets. Workers A and B pull all of them, and worker C pushes.
struct AnswerScene {
  explicit AnswerScene(const plan::Codec& codec = {})
      : job(job_with_pull_codec(codec)),
        buckets(job, ShardId(0), FirstState::of_run),
        answers(job, buckets, clocks, report) {
    admit_workers(clocks, 3);
  }
  static std::shared_ptr<const Job> job_with_pull_codec(const plan::Codec& codec) {
    Plan plan = tiny_plan();
    plan.shards = 1;
    plan.compress.pull = codec;
    return job_of(plan);
  }

  void pull(WorkerId worker, std::int64_t iteration, std::uint32_t number = 1) {
    const std::uint32_t all[] = {0, 1, 2};
    answers.begin(worker, {.iteration = Iteration(iteration), .number = number}, 0, all, out);
  }
  /// Queues an update of one bucket.
  void update(std::uint32_t bucket) {
    Contribution push = push_of(kC, 0, bucket);
    push.weight = 1;
    push.samples = 2;
    push.blocks.clear();
    for (const BlockId id : job->layout->buckets(ShardId(0))[bucket].blocks)
      push.blocks.push_back(gradient_of_ones(*job, id));
    ParameterBucket::Update item;
    item.contributions.push_back(std::move(push));
    buckets.enqueue(bucket, std::move(item));
    buckets.run(bucket, out);
  }
  /// Computes the oldest update, as the host of the shard does.
  void compute_update() {
    const auto work = out.compute_one();
    REQUIRE(work);
    buckets.run(buckets.finish(*work).bucket, out);
  }
  void compute_and_send() {
    compute_update();
    answers.send_complete(out);
  }

  std::vector<msg::Weights> answers_to(WorkerId worker) const {
    return out.sent<msg::Weights>(address_of(worker));
  }
  /// The first block of a bucket in an answer.
  const msg::BlockData& block_of(const msg::Weights& weights, std::uint32_t bucket) const {
    const BlockId id = job->layout->buckets(ShardId(0))[bucket].blocks.front();
    const auto found = std::ranges::find(weights.blocks, id, &msg::BlockData::block);
    REQUIRE(found != weights.blocks.end());
    return *found;
  }
  /// The number of updates of each bucket in an answer.
  std::vector<std::int64_t> versions_of(const msg::Weights& weights) const {
    std::vector<std::int64_t> versions;
    for (const std::uint32_t bucket : {0u, 1u, 2u})
      versions.push_back(block_of(weights, bucket).version.value());
    return versions;
  }

  std::shared_ptr<const Job> job;
  ClockTable clocks;
  RecordingOutbox out;
  BucketQueues buckets;
  msg::ShardReport report;
  PullAnswers answers;
};

std::vector<float> values_of(const msg::BlockData& block) {
  return {block.data.as_floats(), block.data.as_floats() + block.shape.count()};
}

}  // namespace

TEST_CASE("a pull of buckets without updates is answered at once, and its bytes are counted") {
  AnswerScene scene;
  scene.pull(kA, 4, 9);
  CHECK(scene.answers.is_idle());
  const auto sent = scene.out.take<msg::Weights>();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].to == address_of(kA));
  CHECK(sent[0].session == Session(1));
  const msg::Weights& weights = sent[0].body;
  CHECK(weights.iteration == Iteration(4));
  CHECK(weights.number == 9);
  CHECK(weights.blocks.size() == scene.job->layout->blocks().size());
  std::uint64_t bytes = 0;
  for (const auto& block : weights.blocks) {
    CHECK(block.version == Version(0));
    bytes += block.data.size();
  }
  CHECK(scene.report.pull_bytes == bytes);
  CHECK(scene.report.plain_pull_bytes == bytes);
}

TEST_CASE("a pull behind updates is answered when its last bucket has been captured") {
  AnswerScene scene;
  scene.update(0);
  scene.update(2);
  scene.pull(kA, 1);
  scene.compute_and_send();
  CHECK(scene.answers_to(kA).empty());
  scene.compute_update();
  CHECK_FALSE(scene.answers.is_idle());  // complete, but not sent
  CHECK(scene.answers_to(kA).empty());
  scene.answers.send_complete(scene.out);
  CHECK(scene.answers.is_idle());
  REQUIRE(scene.answers_to(kA).size() == 1);
  CHECK(scene.versions_of(scene.answers_to(kA)[0]) == std::vector<std::int64_t>{1, 0, 1});
}

TEST_CASE("a pull gets the updates that were queued before it and no later ones") {
  AnswerScene scene;
  scene.update(0);
  scene.pull(kA, 1);
  scene.update(0);
  scene.pull(kB, 1);
  scene.compute_and_send();
  REQUIRE(scene.answers_to(kA).size() == 1);
  CHECK(scene.answers_to(kB).empty());
  const msg::Weights first = scene.answers_to(kA)[0];
  CHECK(scene.versions_of(first) == std::vector<std::int64_t>{1, 0, 0});
  const auto values = values_of(scene.block_of(first, 0));
  scene.compute_and_send();
  REQUIRE(scene.answers_to(kB).size() == 1);
  const msg::Weights second = scene.answers_to(kB)[0];
  CHECK(scene.versions_of(second) == std::vector<std::int64_t>{2, 0, 0});
  CHECK(values_of(scene.block_of(second, 0)) != values);
  CHECK(values_of(scene.block_of(first, 0)) == values);  // weights that were sent never change
}

TEST_CASE("answers share the memory of the shard's weights") {
  AnswerScene scene;
  scene.pull(kA, 0);
  scene.pull(kB, 0);
  REQUIRE(scene.answers_to(kA).size() == 1);
  REQUIRE(scene.answers_to(kB).size() == 1);
  const msg::Weights of_a = scene.answers_to(kA)[0], of_b = scene.answers_to(kB)[0];
  for (const msg::StoredBlock& stored : scene.buckets.save()) {
    const auto same_block = [&](const msg::BlockData& block) {
      return block.block == stored.weights.block && block.data == stored.weights.data;
    };
    CHECK(std::ranges::any_of(of_a.blocks, same_block));
    CHECK(std::ranges::any_of(of_b.blocks, same_block));
  }
}

TEST_CASE("each version of a block is encoded once, for all pulls") {
  AnswerScene scene(plan::Bf16{});
  scene.pull(kA, 0);
  scene.pull(kB, 0);
  REQUIRE(scene.answers_to(kA).size() == 1);
  REQUIRE(scene.answers_to(kB).size() == 1);
  CHECK(scene.report.pull_bytes > 0);
  CHECK(scene.report.plain_pull_bytes == 2 * scene.report.pull_bytes);
  const msg::Weights of_a = scene.answers_to(kA)[0], of_b = scene.answers_to(kB)[0];
  for (const std::uint32_t bucket : {0u, 1u, 2u}) {
    CHECK(scene.block_of(of_a, bucket).codec == id_of(plan::Bf16{}));
    CHECK(scene.block_of(of_a, bucket).data == scene.block_of(of_b, bucket).data);
  }
  scene.update(0);
  scene.compute_update();
  scene.pull(kA, 1);
  REQUIRE(scene.answers_to(kA).size() == 2);
  const msg::Weights later = scene.answers_to(kA)[1];
  CHECK_FALSE(scene.block_of(later, 0).data == scene.block_of(of_a, 0).data);
  CHECK(scene.block_of(later, 1).data == scene.block_of(of_a, 1).data);
  CHECK(scene.block_of(later, 2).data == scene.block_of(of_a, 2).data);
}

TEST_CASE("the answer to a session that was fenced or replaced is not sent") {
  AnswerScene scene;
  scene.update(0);
  scene.pull(kA, 1);
  scene.pull(kB, 1);
  scene.clocks.remove(kA);
  scene.clocks.admit(kA, Session(2), Iteration(3));
  scene.clocks.fence(kB);
  scene.compute_and_send();
  CHECK(scene.answers.is_idle());
  CHECK(scene.out.has_sent_nothing());
  scene.pull(kA, 3);
  const auto sent = scene.out.take<msg::Weights>();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].session == Session(2));
  CHECK(sent[0].body.iteration == Iteration(3));
}

}  // namespace leeway::test
