// Stages: the chunks of the model that each worker trains, and their blocks on each shard.
#include "actors/stages.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <set>

#include "core/limits.hpp"
#include "runtime/models.hpp"

using namespace leeway;

namespace {

constexpr std::uint32_t kVocabulary = 11;

/// A model with a layout for `shards` shards.
struct Setup {
  Setup(const std::vector<plan::Layer>& layers, std::uint32_t shards, const Shape& input,
        int classes, std::int64_t labels = 1)
      : model(*Model::build(layers, plan::Loss::softmax_cross_entropy, input, classes, 0, labels)),
        layout(*model, shards, limits::kMaxBlockBytes) {
    plan.model = layers;
    plan.shards = shards;
  }
  Expected<std::shared_ptr<const Stages>> try_stages() const {
    return make_stages(plan, *model, layout, *make_consistency(plan.consistency));
  }
  std::shared_ptr<const Stages> stages() const {
    const auto made = try_stages();
    INFO((made ? "" : made.error().text));
    REQUIRE(made);
    return *made;
  }
  std::string refusal() const {
    const auto made = try_stages();
    return made ? "" : made.error().text;
  }

  std::shared_ptr<const Model> model;
  Layout layout;
  Plan plan;
};

/// Five layers; 0, 2 and 4 have one block each.
Setup perceptron(std::uint32_t shards) {
  return {{linear(6), relu(), linear(5), relu(), linear(3)}, shards, {4}, 3};
}
/// Layer 0 is the embedding, whose table layer 7 borrows.
Setup transformer(std::uint32_t shards) {
  return {gpt({.layers = 2, .width = 8, .heads = 2}), shards, {6}, kVocabulary, 6};
}
Setup residual_network(std::uint32_t shards) {
  return {small_resnet(10), shards, {1, 28, 28}, 10};
}

Setup piped(Setup setup, std::uint32_t stages, std::uint32_t pipelines = 1) {
  setup.plan.pipeline.stages = stages;
  setup.plan.workers = stages * pipelines;
  setup.plan.micro_batches = 8;
  return setup;
}

using Layers = std::vector<std::pair<int, int>>;

/// The first layer of each model chunk, and the layer behind its last.
Layers layers_of(const Stages& stages) {
  Layers out;
  for (const ModelChunk& chunk : stages.chunks()) out.emplace_back(chunk.first, chunk.end);
  return out;
}

/// The stages that train a layer's parameters, as owners or as borrowers.
std::set<std::uint32_t> trained_by(const Setup& setup, const Stages& stages, int layer) {
  std::set<std::uint32_t> out;
  for (std::size_t chunk = 0; chunk < stages.chunks().size(); ++chunk) {
    for (int own = stages.chunks()[chunk].first; own < stages.chunks()[chunk].end; ++own) {
      const int borrowed = setup.model->borrowed_parameter(own);
      const bool borrows =
          borrowed != Model::kNone &&
          setup.model->parameters()[static_cast<std::size_t>(borrowed)].layer == layer;
      if (own == layer || borrows)
        out.insert(
            static_cast<std::uint32_t>(stages.placement().stage_of(static_cast<int>(chunk))));
    }
  }
  return out;
}

/// Invariants for any model, shards and stages.
void check_shares(const Setup& setup, const Stages& stages) {
  for (std::uint32_t index = 0; index < setup.layout.shards(); ++index) {
    const ShardId shard(index);
    const auto& buckets = setup.layout.buckets(shard);
    for (std::uint32_t bucket = 0; bucket < buckets.size(); ++bucket) {
      const auto& owners = stages.owners(shard, bucket);
      CHECK(std::set<std::uint32_t>(owners.begin(), owners.end()) ==
            trained_by(setup, stages, buckets[bucket].layer));
      CHECK(std::is_sorted(owners.begin(), owners.end()));
    }
    for (std::uint32_t stage = 0; stage < stages.count(); ++stage) {
      const StageShare& share = stages.share(stage);
      REQUIRE(share.at.size() == setup.layout.shards());
      const StageShare::AtShard& at = share.at[index];
      REQUIRE(at.buckets.size() == at.shard_buckets.size());
      std::vector<BlockId> blocks;
      for (std::uint32_t i = 0; i < at.buckets.size(); ++i) {
        CHECK(at.buckets[i].index == i);
        CHECK(at.buckets[i].blocks == buckets[at.shard_buckets[i]].blocks);
        if (i > 0) CHECK(at.buckets[i].layer <= at.buckets[i - 1].layer);
        const auto& owners = stages.owners(shard, at.shard_buckets[i]);
        CHECK(std::count(owners.begin(), owners.end(), stage) == 1);
        blocks.insert(blocks.end(), at.buckets[i].blocks.begin(), at.buckets[i].blocks.end());
      }
      std::sort(blocks.begin(), blocks.end());
      CHECK(at.blocks == blocks);
      CHECK(std::count(share.shards.begin(), share.shards.end(), shard) ==
            (blocks.empty() ? 0 : 1));
    }
  }
}

}  // namespace

TEST_CASE("with one stage every worker trains the whole model") {
  Setup setup = transformer(2);
  setup.plan.workers = 3;
  const auto stages = setup.stages();
  CHECK_FALSE(stages->piped());
  CHECK(stages->pipelines() == 3);
  CHECK(layers_of(*stages) == Layers{{0, setup.model->layers()}});
  for (std::uint32_t worker = 0; worker < 3; ++worker) {
    CHECK(stages->stage_of(WorkerId(worker)) == 0);
    CHECK(stages->lead_of(WorkerId(worker)) == WorkerId(worker));
  }
  const StageShare& share = stages->share_of(WorkerId(2));
  CHECK(share.shards == std::vector<ShardId>{ShardId(0), ShardId(1)});
  for (const ShardId shard : share.shards) {
    const auto& at = share.at[shard.value()];
    const auto& whole = setup.layout.buckets(shard);
    REQUIRE(at.buckets.size() == whole.size());
    for (std::size_t i = 0; i < whole.size(); ++i) {
      CHECK(at.buckets[i].index == whole[i].index);
      CHECK(at.buckets[i].layer == whole[i].layer);
      CHECK(at.buckets[i].blocks == whole[i].blocks);
      CHECK(at.shard_buckets[i] == i);
      CHECK(stages->owners(shard, static_cast<std::uint32_t>(i)) == std::vector<std::uint32_t>{0});
    }
    CHECK(at.blocks == setup.layout.blocks_of(shard));
  }
}

TEST_CASE("workers are the stages of the first pipeline, then of the next") {
  const auto stages = piped(perceptron(1), 3, 2).stages();
  CHECK(stages->count() == 3);
  CHECK(stages->pipelines() == 2);
  const WorkerId fifth(4);
  CHECK(stages->stage_of(fifth) == 1);
  CHECK(stages->lead_of(fifth) == WorkerId(3));
  CHECK(stages->worker(WorkerId(3), 2) == WorkerId(5));
  CHECK(&stages->share_of(fifth) == &stages->share(1));
}

TEST_CASE("a stage's name gives its pipeline and its worker") {
  const auto two = piped(perceptron(1), 3, 2).stages();
  CHECK(two->name_of(WorkerId(0)) == "pipeline 0 stage 0 (worker 0)");
  CHECK(two->name_of(WorkerId(5)) == "pipeline 1 stage 2 (worker 5)");
  CHECK(two->name_of_member(WorkerId(3)) == "pipeline 1 (workers 3 to 5)");
  CHECK(two->name_of_member(WorkerId(4)) == "pipeline 1 (workers 3 to 5)");
  const auto whole = perceptron(1).stages();
  CHECK(whole->name_of(WorkerId(3)) == "worker 3");
  CHECK(whole->name_of_member(WorkerId(3)) == "worker 3");
}

TEST_CASE("each block belongs only to the stages that train its layer") {
  for (const std::uint32_t stages : {1u, 2u, 3u, 4u}) {
    for (const std::uint32_t shards : {1u, 2u, 3u}) {
      for (const Setup& setup :
           {piped(perceptron(shards), stages), piped(transformer(shards), stages),
            piped(residual_network(shards), stages)}) {
        INFO(stages << " stages, " << shards << " shards, " << setup.model->layers() << " layers");
        const auto made = setup.stages();
        CHECK(made->chunks().size() == stages);
        check_shares(setup, *made);
      }
    }
  }
}

TEST_CASE("buckets are numbered per stage and shard, from the last layer") {
  Setup setup = piped(perceptron(1), 2);
  setup.plan.pipeline.split = "0,1-4";
  const auto stages = setup.stages();
  const auto& first = stages->share(0).at[0];
  const auto& last = stages->share(1).at[0];
  REQUIRE(first.buckets.size() == 1);
  CHECK(first.buckets[0].index == 0);
  CHECK(first.buckets[0].layer == 0);
  CHECK(first.shard_buckets == std::vector<std::uint32_t>{2});
  REQUIRE(last.buckets.size() == 2);
  CHECK(last.buckets[0].layer == 4);
  CHECK(last.buckets[1].layer == 2);
  CHECK(last.shard_buckets == std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("tied weights belong to the first and the last stage") {
  const Setup setup = piped(transformer(2), 3);
  const auto stages = setup.stages();
  const int borrower = setup.model->layers() - 1;
  REQUIRE(setup.model->borrowed_parameter(borrower) != Model::kNone);
  int tables = 0;
  for (const ShardId shard : {ShardId(0), ShardId(1)}) {
    for (std::uint32_t bucket = 0; bucket < setup.layout.buckets(shard).size(); ++bucket) {
      if (setup.layout.buckets(shard)[bucket].layer != 0) continue;
      ++tables;
      CHECK(stages->owners(shard, bucket) == std::vector<std::uint32_t>{0, 2});
      // The tied gradient is the last stage's first bucket and the first stage's last one.
      const auto& first = stages->share(0).at[shard.value()];
      const auto& last = stages->share(2).at[shard.value()];
      CHECK(last.buckets.front().layer == borrower);
      CHECK(last.shard_buckets.front() == bucket);
      CHECK(first.buckets.back().layer == 0);
      CHECK(first.shard_buckets.back() == bucket);
    }
  }
  CHECK(tables == 1);
  check_shares(setup, *stages);
}

TEST_CASE("a shard can have no blocks of a stage, and a stage can have no blocks") {
  Setup setup = piped(perceptron(3), 3);
  setup.plan.pipeline.split = "0,1,2-4";
  const auto stages = setup.stages();
  check_shares(setup, *stages);
  CHECK(stages->share(0).shards.size() == 1);
  CHECK(stages->share(1).shards.empty());  // only a relu
  CHECK(stages->share(2).shards.size() == 2);
  for (const ShardId shard : {ShardId(0), ShardId(1), ShardId(2)})
    CHECK(stages->share(1).at[shard.value()].blocks.empty());
}

TEST_CASE("a stage with several chunks has every n-th chunk of the model") {
  Setup setup = piped(residual_network(2), 2);
  setup.plan.pipeline.schedule = "interleaved";
  setup.plan.pipeline.chunks = 3;
  const auto stages = setup.stages();
  REQUIRE(stages->chunks().size() == 6);
  CHECK(stages->chunks().front().first == 0);
  CHECK(stages->chunks().back().end == setup.model->layers());
  for (std::size_t i = 0; i < 6; ++i) {
    const ModelChunk& chunk = stages->share(i % 2).chunks[i / 2];
    CHECK(chunk.first == stages->chunks()[i].first);
    CHECK(chunk.end == stages->chunks()[i].end);
    if (i > 0) CHECK(chunk.first == stages->chunks()[i - 1].end);
  }
  CHECK(stages->spec() == pipeline::Spec{"interleaved", 2, 8, 3, 1});
  check_shares(setup, *stages);
}

TEST_CASE("in a V a stage has a chunk from each half, and the first stage has tied weights twice") {
  Setup setup = piped(transformer(2), 2);
  setup.plan.pipeline.schedule = "zb_v";
  setup.plan.pipeline.chunks = 2;
  const auto stages = setup.stages();
  REQUIRE(stages->chunks().size() == 4);
  for (const std::uint32_t stage : {0u, 1u})
    for (const std::size_t half : {0u, 1u}) {
      const ModelChunk& chunk = stages->share(stage).chunks[half];
      CHECK(chunk.first == stages->chunks()[half == 0 ? stage : 3 - stage].first);
    }
  CHECK(stages->loss_stage() == 0);
  CHECK(stages->neighbours(WorkerId(0)) == std::vector{WorkerId(1)});
  for (const ShardId shard : {ShardId(0), ShardId(1)})
    for (std::uint32_t bucket = 0; bucket < setup.layout.buckets(shard).size(); ++bucket)
      if (setup.layout.buckets(shard)[bucket].layer == 0)
        CHECK(stages->owners(shard, bucket) == std::vector<std::uint32_t>{0});
  check_shares(setup, *stages);
}

TEST_CASE("a split in the plan names layers by number or by kind") {
  Setup setup = piped(perceptron(1), 3);
  setup.plan.pipeline.split = "0,1-3,4";
  CHECK(layers_of(*setup.stages()) == Layers{{0, 1}, {1, 4}, {4, 5}});
  Setup network = piped(residual_network(1), 2);
  network.plan.pipeline.split = "conv2d-2,3-linear";
  const auto stages = network.stages();
  REQUIRE(stages->chunks().size() == 2);
  CHECK(stages->chunks()[0].end == stages->chunks()[1].first);
  CHECK(stages->chunks()[1].end == network.model->layers());
  check_shares(network, *stages);
}

TEST_CASE("the stages that the plan names recompute activations") {
  Setup setup = piped(perceptron(1), 3);
  setup.plan.pipeline.recompute = {0, 2};
  const auto stages = setup.stages();
  CHECK(stages->share(0).recompute);
  CHECK_FALSE(stages->share(1).recompute);
  CHECK(stages->share(2).recompute);
}

TEST_CASE("an impossible split is refused with the nearest valid number or name") {
  CHECK(
      piped(perceptron(1), 6).refusal() ==
      "pipeline.stages: 6 are too many for a model that can be split into 5 pieces; give --stages "
      "5");
  Setup setup = piped(perceptron(1), 2);
  setup.plan.pipeline.schedule = "interleaved";
  setup.plan.pipeline.chunks = 3;
  CHECK(setup.refusal() ==
        "pipeline.chunks: 3 on each of 2 stages are too many for a model that can be split into 5 "
        "pieces; give --chunks 2");
  setup.plan.pipeline.chunks = 1;
  setup.plan.pipeline.split = "0-1,2-9";
  CHECK(setup.refusal() ==
        "pipeline.split: the split \"0-1,2-9\": there is no layer \"9\" before which the model can "
        "be split; it has 0, 1, 2, 3, 4");
  setup.plan.pipeline.split = "0-1,2,3-4";
  CHECK(setup.refusal() ==
        "pipeline.split: the split has 3 chunks, and 2 stages with 1 chunk each make 2; give 2 "
        "chunks, or --stages 3");
}

TEST_CASE("an unknown or unsuitable schedule is refused with a valid setting") {
  Setup setup = perceptron(1);
  setup.plan.pipeline.schedule = "1f2b";
  CHECK(setup.refusal() ==
        "pipeline.schedule: there is no schedule \"1f2b\"; did you mean \"1f1b\"?");
  setup = piped(std::move(setup), 2);
  CHECK(setup.refusal() ==
        "pipeline.schedule: there is no schedule \"1f2b\"; did you mean \"1f1b\"?");
  setup.plan.pipeline.schedule = "interleaved";
  setup.plan.pipeline.chunks = 2;
  setup.plan.micro_batches = 7;
  CHECK(setup.refusal() ==
        "pipeline.schedule: interleaved: 7 micro-batches on 2 stages do not make 3 equal groups; "
        "give --micro-batches 6 or 8");
  // Without a pipeline, the number of micro-batches has no limit.
  Setup whole = perceptron(1);
  whole.plan.batch = whole.plan.micro_batches = 100'000;
  CHECK(whole.refusal() == "");
}

TEST_CASE("a schedule without a flush requires a staleness bound of at least its version lag") {
  const auto refusal = [](const char* schedule, std::uint32_t stages, std::uint32_t micro_batches,
                          plan::Consistency consistency) {
    Setup setup = piped(perceptron(1), stages);
    setup.plan.pipeline.schedule = schedule;
    setup.plan.micro_batches = micro_batches;
    setup.plan.consistency = consistency;
    return setup.refusal();
  };
  CHECK(refusal("weight_stashing", 4, 1, plan::Bsp{}) ==
        "pipeline.schedule: weight_stashing on 4 stages computes gradients on weights that are "
        "older by up to 3 updates, and the staleness bound is 0; give --staleness 3 or more, or a "
        "schedule with a flush, such as 1f1b");
  CHECK(refusal("2bw", 2, 2, plan::Ssp{0}) ==
        "pipeline.schedule: 2bw on 2 stages computes gradients on weights that are older by up to "
        "1 update, and the staleness bound is 0; give --staleness 1 or more, or a schedule with a "
        "flush, such as 1f1b");
  CHECK(refusal("weight_stashing", 4, 1, plan::Ssp{2}).find("give --staleness 3 or more") !=
        std::string::npos);
  CHECK(refusal("weight_stashing", 4, 1, plan::Adaptive{2, 8})
            .find("the staleness bound can fall to 2") != std::string::npos);
  CHECK(refusal("weight_stashing", 4, 1, plan::Ssp{3}) == "");
  CHECK(refusal("weight_stashing", 4, 3, plan::Ssp{1}) == "");
  CHECK(refusal("weight_stashing", 4, 1, plan::Adaptive{3, 8}) == "");
  CHECK(refusal("weight_stashing", 4, 1, plan::Asp{}) == "");
  CHECK(refusal("weight_stashing", 1, 1, plan::Bsp{}) == "");
  for (const char* schedule : {"gpipe", "1f1b", "interleaved", "zb_h1"})
    CHECK(refusal(schedule, 4, 8, plan::Bsp{}) == "");
}

TEST_CASE("stages know whether their schedule flushes, and its version lag") {
  const auto made = [](const char* schedule) {
    Setup setup = piped(perceptron(1), 4);
    setup.plan.pipeline.schedule = schedule;
    setup.plan.micro_batches = 3;
    setup.plan.consistency = plan::Asp{};
    return setup.stages();
  };
  CHECK_FALSE(made("1f1b")->asynchronous());
  CHECK(made("1f1b")->version_lag() == 0);
  CHECK(made("2bw")->asynchronous());
  CHECK(made("2bw")->version_lag() == 1);
  CHECK(made("weight_stashing")->version_lag() == 1);
  CHECK(made("fill_drain")->spec().schedule == "gpipe");
}
