#include "actors/shard/push_check.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <functional>

#include "policies/codec/blobs.hpp"
#include "tests/actors/shard_scene.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {

using Catch::Contains;

TEST_CASE("an invalid push is refused with the value found") {
  Plan plan = tiny_plan();
  plan.shards = 1;
  const ShardScene scene(job_of(plan));
  const auto& share = scene.share_of(WorkerId(0));
  const auto error = [&](const std::function<void(msg::Push&)>& change) {
    auto push = scene.push_of(WorkerId(0), 0, 0);
    change(push);
    const auto valid = validate_push(push, share, scene.job());
    return valid ? std::string() : valid.error().text;
  };
  CHECK(error([](msg::Push&) {}) == "");
  CHECK(error([](msg::Push& push) { push.bucket_count = 9; }) ==
        "bucket_count is 9, this shard has 3 buckets");
  CHECK(error([](msg::Push& push) { push.kind = msg::Push::Kind::delta; }) ==
        "deltas are not taken here, send gradients");
  plan.local_steps.count = 2;
  CHECK(validate_push(scene.push_of(WorkerId(0), 0, 0), share, *job_of(plan)).error().text ==
        "gradients are not taken here, send the deltas of local steps");
  CHECK(error([](msg::Push& push) { push.rows = {1}; }) ==
        "sparse pushes are not taken here, send all rows");
  CHECK(error([](msg::Push& push) { push.kind = msg::Push::Kind::empty; }) ==
        "an empty push has 2 samples; send 0");
  const auto assigns = [](std::uint32_t slice) {
    return [=](msg::Push& push) { push.assigned = {slice}; };
  };
  CHECK(error(assigns(0)) == "");
  CHECK(error(assigns(900)).starts_with("slice 900 is assigned, bucket 0 has "));
  CHECK(error([](msg::Push& push) {
          push.assigned = {0};
          push.samples = 0;
          push.weight = 0;
        }) == "");
  CHECK(error([](msg::Push& push) {
          push.assigned = {0};
          push.kind = msg::Push::Kind::empty;
        }) == "an empty push assigns no slices");
  CHECK(error([](msg::Push& push) { push.samples = 0; }) ==
        "a gradient needs samples and a weight above 0");
  CHECK(error([](msg::Push& push) { push.weight = 1.5; }) ==
        "weight 1.5 is not the share of 2 samples in a round");
  CHECK(error([](msg::Push& push) { push.scale = -0.5f; }) == "scale is -0.5, must be 0 to 1");
  CHECK(error([](msg::Push& push) { push.scale = 1.5f; }) == "scale is 1.5, must be 0 to 1");
  CHECK(error([](msg::Push& push) { push.blocks.clear(); }) == "bucket 0 has 1 blocks, not 0");
  CHECK(error([](msg::Push& push) {
          push.blocks[0].block = BlockId(77);
        }).find("expected block ") == 0);
  CHECK(error([](msg::Push& push) { push.blocks[0].shape = Shape{1}; }).find(" x f32, is ") !=
        std::string::npos);
}

TEST_CASE("a push with a loss scale that no shard sends is refused") {
  Plan plan = tiny_plan();
  plan.shards = 1;
  plan.consistency = plan::Bsp{};
  plan.precision = "fp16";
  const ShardScene scene(job_of(plan));
  const auto error = [&](float scale) {
    auto push = scene.push_of(WorkerId(0), 0, 0);
    push.loss_scale = scale;
    const auto valid = validate_push(push, scene.share_of(WorkerId(0)), scene.job());
    return valid ? std::string() : valid.error().text;
  };
  for (const float scale : {1.0f, 2.0f, 65536.0f, 16777216.0f}) CHECK(error(scale) == "");
  CHECK(error(0) == "the loss scale is 0, and losses have one in this run");
  for (const float scale : {0.5f, 3.0f, 3.7f, 33554432.0f, INFINITY})
    CHECK_THAT(error(scale), Contains("must be a power of two up to 1"));
}

TEST_CASE("a push with an invalid encoding is refused, and the error names the fault") {
  Plan plan = tiny_plan();
  plan.shards = 1;
  plan.compress.push = plan::TopK{0.5};
  const ShardScene scene(job_of(plan));
  const auto& share = scene.share_of(WorkerId(0));
  const auto error = [&](const std::function<void(msg::BlockData&)>& change) {
    auto push = scene.push_of(WorkerId(0), 0, 0);
    msg::BlockData& block = push.blocks[0];
    block.codec = CodecId::top_k;
    const Codec& codec = scene.job().push_codecs->at(Iteration(0));
    block.data = encode_blob(codec, block.data, block.shape.count());
    change(block);
    const auto valid = validate_push(push, share, scene.job());
    return valid ? std::string() : valid.error().text;
  };
  CHECK(error([](msg::BlockData&) {}) == "");
  CHECK_THAT(error([](msg::BlockData& block) { block.codec = CodecId::int8; }),
             Contains("an encoding that the plan does not name"));
  CHECK_THAT(error([](msg::BlockData& block) { block.data = Blob::allocate(3); }),
             Contains("bytes"));
  CHECK_THAT(error([](msg::BlockData& block) {
               std::memset(block.data.mutable_data(), 0xff, block.data.size());
             }),
             Contains("top_k: place "));
}

TEST_CASE("an empty push needs no blocks") {
  const ShardScene scene(job_of(tiny_plan()));
  const auto& share = scene.share_of(WorkerId(0));
  const msg::Push push{.bucket = 0,
                       .bucket_count = static_cast<std::uint32_t>(share.buckets.size()),
                       .kind = msg::Push::Kind::empty};
  CHECK(validate_push(push, share, scene.job()));
}

}  // namespace leeway::test
