// The checker of encodings accepts pushes whose residuals are kept, and names those that are not.
#include "sim/checkers/encodings.hpp"

#include <catch2/catch.hpp>

#include "actors/worker/checked_sum.hpp"
#include "policies/codec/blobs.hpp"
#include "runtime/words.hpp"
#include "tests/sim/checker_story.hpp"

namespace leeway::sim {
namespace {

using Catch::Matchers::Contains;

/// One worker that pushes a block of ones in int8.
struct EncodingStory : Story {
  EncodingStory() : EncodingStory(job_in_int8()) {}
  explicit EncodingStory(std::shared_ptr<const Job> of)
      : Story({std::make_shared<EncodingChecker>(of)}),
        job(std::move(of)),
        block(job->layout->block(BlockId(0))) {}

  static std::shared_ptr<const Job> job_in_int8() {
    Plan plan = test::tiny_plan();
    plan.compress.push = int8();
    return test::job_of(plan);
  }
  Blob ones() const {
    Blob values = Blob::floats(block.floats);
    std::fill_n(values.mutable_floats(), block.floats, 1.0f);
    return values;
  }
  double count() const { return static_cast<double>(block.floats); }
  /// The worker reports an encoding of `given`, and sends a push of ones.
  void pushes(std::int64_t iteration, double given, double residual) {
    emits(kWorkerA,
          event::GradientEncoded{kA, Iteration(iteration), block.id, given, residual, 2 * count()});
    sends_push(iteration);
  }
  void sends_push(std::int64_t iteration) { sends_push(iteration, ones()); }
  void sends_push(std::int64_t iteration, const Blob& values) {
    msg::Push push;
    push.iteration = Iteration(iteration);
    push.bucket_count = 1;
    push.blocks.push_back({block.id, Version(0), DType::f32, Shape{block.floats},
                           encode_blob(job->push_codecs->at(push.iteration), values, block.floats),
                           CodecId::int8});
    sends(kWorkerA, kShard, push);
  }
  double sum_of(const Blob& values) const {
    return checked_sum({values.as_floats(), static_cast<std::size_t>(block.floats)});
  }
  /// The sum of a block of ones without its padding.
  double decoded() const {
    Blob values = ones();
    zero_padding(block, values.mutable_floats());
    return sum_of(values);
  }

  std::shared_ptr<const Job> job;
  const Block& block;
};

}  // namespace

TEST_CASE("an encoded push at the end of a lease that flushes is a violation") {
  EncodingStory story;
  msg::Lease lease{.end = 6, .first_iteration = Iteration(3), .batch = 3, .round_samples = 3};
  lease.flushes = true;
  story.sends(kScheduler, kWorkerA, lease);
  const auto pushes = [&](std::int64_t iteration) {
    return seen([&] { story.pushes(iteration, story.decoded(), 0); });
  };
  CHECK(pushes(3) == "");
  CHECK_THAT(pushes(4), Contains("the lease flushes, but its last push is encoded"));
  CHECK(pushes(5) == "");
  story.emits(kScheduler, event::Evicted{kA});
  CHECK(pushes(4) == "");
}

TEST_CASE("a residual that a checkpoint lacks and its shard does not report is a violation") {
  EncodingStory story;
  msg::Snapshot order{.snapshot = 1, .checkpoint = 7};
  order.iterations.assign(story.job->stages->pipelines(), Iteration(5));
  story.sends(kScheduler, kShard, order);
  const auto stores = [&](std::vector<WorkerId> residuals) {
    msg::Stored stored{.checkpoint = 7};
    stored.residuals = std::move(residuals);
    return seen([&] { story.sends(kShard, kScheduler, stored); });
  };
  story.pushes(3, story.decoded(), 0);
  CHECK(stores({}) == "");
  story.pushes(4, story.decoded() + 2, 2);
  CHECK_THAT(stores({}), Contains("lacks the residual of worker"));
  CHECK(stores({kA}) == "");
  story.emits(kShard, event::PushDropped{.worker = kA, .iteration = Iteration(4)});
  CHECK(stores({}) == "");
  story.emits(kScheduler, event::Evicted{kA});
  CHECK(stores({}) == "");
}

TEST_CASE("a push whose values have changed places is a violation") {
  EncodingStory story;
  // Exact in int8.
  const auto one_value_at = [&](std::size_t place) {
    Blob values = Blob::floats(story.block.floats);
    std::fill_n(values.mutable_floats(), story.block.floats, 0.0f);
    values.mutable_floats()[place] = 127;
    return values;
  };
  const double sum = story.sum_of(one_value_at(0));
  const auto pushes = [&](std::int64_t iteration, std::size_t place) {
    story.emits(kWorkerA, event::GradientEncoded{kA, Iteration(iteration), story.block.id, sum, 0,
                                                 2 * std::abs(sum)});
    story.sends_push(iteration, one_value_at(place));
  };
  pushes(0, 0);
  CHECK_THROWS_WITH(pushes(1, 1), Contains("push and next residual"));
}

TEST_CASE(
    "a push with new weights of a slice drops its residual, and sends the residuals of other "
    "slices") {
  EncodingStory story;
  REQUIRE(story.block.slices.size() > 1);
  const auto end = story.block.slices[1].offset;  // of slice 0, with padding
  const auto pushes_ones = [&](double given, bool has_gradients) {
    story.emits(kWorkerA, event::GradientEncoded{kA, Iteration(1), story.block.id, given, 0,
                                                 2 * story.count()});
    msg::Push push{.iteration = Iteration(1), .bucket_count = 1, .assigned = {0}};
    push.samples = has_gradients ? 10 : 0;
    push.blocks.push_back(
        {story.block.id, Version(0), DType::f32, Shape{story.block.floats}, story.ones()});
    story.sends(kWorkerA, kShard, push);
  };
  Blob others = story.ones();
  std::fill_n(others.mutable_floats(), end, 0.0f);
  zero_padding(story.block, others.mutable_floats());
  const double sum = story.sum_of(others);  // of the gradients
  REQUIRE(sum > 0);
  story.pushes(0, story.decoded() + 3, 3);
  pushes_ones(sum - 3, true);
  story.pushes(0, story.decoded() + 3, 3);
  pushes_ones(-3, false);
  story.pushes(0, story.decoded() + 3, 3);
  CHECK_THROWS_WITH(pushes_ones(sum, true), Contains("push and next residual"));
}

TEST_CASE("an encoding may lose values that its residual has") {
  EncodingStory story;
  story.pushes(0, story.decoded() + 3, 3);
  story.pushes(1, story.decoded(), 3);
  story.sends_push(1);  // after a lost connection
  story.pushes(2, story.decoded() - 3, 0);
  // A new process begins without a residual.
  story.pushes(3, story.decoded() + 2, 2);
  story.ends(kWorkerA);
  story.pushes(4, story.decoded(), 0);
}

TEST_CASE("an encoding that loses a value is named") {
  EncodingStory story;
  CHECK_THAT(seen([&] { story.pushes(0, story.decoded() + 3, 2); }),
             Contains("iteration 0, block 0: gradient and residual have the sum"));
}

TEST_CASE("a worker that forgets its residual is named") {
  EncodingStory story;
  story.pushes(0, story.decoded() + 3, 3);
  CHECK_THAT(seen([&] { story.pushes(1, story.decoded(), 0); }), Contains("iteration 1, block 0"));
}

}  // namespace leeway::sim
