// A shard with a delay policy: the lags and the old weights that it finds for pushes.
#include <catch2/catch.hpp>

#include <cmath>

#include "tests/actors/shard_scene.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {
namespace {

const WorkerId kAhead(0), kBehind(1);

/// Two workers without a bound, under plain SGD. Each push has weight 1/2.
Plan delay_plan(plan::DelayPolicy policy) {
  Plan plan = tiny_plan();
  plan.consistency = plan::Asp{};
  plan.workers = 2;
  plan.shards = 1;
  plan.delay_policy = policy;
  return plan;
}

using BlockFloats = std::map<BlockId, std::vector<float>>;

BlockFloats block_floats(const std::vector<msg::BlockData>& blocks) {
  return floats_of(msg::SnapshotState{.blocks = blocks});
}

/// Pulls, so that the scene has the present weights of the shard.
BlockFloats present(ShardScene& scene, WorkerId worker, std::int64_t iteration) {
  REQUIRE(scene.pull(worker, iteration));
  return block_floats(scene.weights(worker, iteration));
}

/// The fast worker pushes iterations [first, last).
void run_fast(ShardScene& scene, std::int64_t first, std::int64_t last) {
  for (std::int64_t i = first; i < last; ++i) {
    REQUIRE(scene.pull(kAhead, i));
    scene.push_all(kAhead, i);
  }
}

/// Requires that a push of the slow worker's iteration has moved `before` by `step(g, w, v)` times
/// the learning rate, v being the weights that it has pulled.
template <class Step>
void require_moved(ShardScene& scene, std::int64_t iteration, const BlockFloats& before,
                   const BlockFloats& after, Step step) {
  const BlockFloats pulled = block_floats(scene.weights(kBehind, iteration));
  const double rate = scene.job().plan.optimizer.learning_rate;
  double largest = 0;
  for (const auto& [id, w] : before) {
    const Blob gradient = test::gradient_of(scene.job(), id, kBehind, iteration);
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double moved = step(static_cast<double>(gradient.as_floats()[i]),
                                static_cast<double>(w[i]), static_cast<double>(pulled.at(id)[i]));
      CHECK(std::abs(static_cast<double>(w[i]) - rate * moved -
                     static_cast<double>(after.at(id)[i])) < 1e-6);
      largest = std::max(largest, std::abs(moved));
    }
  }
  CHECK(largest > 0);
}

}  // namespace

TEST_CASE("the lag of a push is the sum of the weights between its pull and its update") {
  ShardScene scene(job_of(delay_plan(plan::LagScaled{1})));
  scene.admit_all();
  REQUIRE(scene.pull(kBehind, 0));
  run_fast(scene, 0, 6);  // 6 pushes of weight 1/2
  const BlockFloats before = present(scene, kAhead, 6);
  scene.push_all(kBehind, 0);
  require_moved(scene, 0, before, present(scene, kBehind, 1),
                [](double g, double, double) { return g / 2 / 3; });
}

TEST_CASE("with whole steps every push has weight 1, and the lag counts updates") {
  Plan plan = delay_plan(plan::LagScaled{1});
  plan.optimizer.whole_steps = true;
  ShardScene scene(job_of(plan));
  scene.admit_all();
  REQUIRE(scene.pull(kBehind, 0));
  run_fast(scene, 0, 6);
  const BlockFloats before = present(scene, kAhead, 6);
  scene.push_all(kBehind, 0);
  require_moved(scene, 0, before, present(scene, kBehind, 1),
                [](double g, double, double) { return g / 6; });
}

TEST_CASE("a push is corrected with the weights that its worker has pulled") {
  ShardScene scene(job_of(delay_plan(plan::DelayCompensated{.lambda = 2})));
  scene.admit_all();
  run_fast(scene, 0, 2);
  REQUIRE(scene.pull(kBehind, 0));
  run_fast(scene, 2, 5);
  BlockFloats before = present(scene, kAhead, 5);
  scene.push_all(kBehind, 0);
  const auto step = [](double g, double w, double v) { return (g + 2 * g * g * (w - v)) / 2; };
  BlockFloats after = present(scene, kBehind, 1);
  require_moved(scene, 0, before, after, step);
  scene.push_all(kAhead, 5);  // on the weights before the slow worker's push
  before = present(scene, kAhead, 6);
  scene.push_all(kBehind, 1);
  require_moved(scene, 1, before, present(scene, kBehind, 2), step);
}

TEST_CASE("a prefetch of the same version is remembered beyond the first push") {
  Plan plan = delay_plan(plan::LagScaled{1});
  plan.optimizer.whole_steps = plan.prefetch = true;
  ShardScene scene(job_of(plan));
  scene.admit_all();
  REQUIRE((scene.pull(kBehind, 0, 0) && scene.pull(kBehind, 1, 0)));
  scene.push_all(kBehind, 0);
  run_fast(scene, 0, 3);
  const BlockFloats before = present(scene, kAhead, 3);
  scene.push_all(kBehind, 1);
  require_moved(scene, 1, before, present(scene, kBehind, 2),
                [](double g, double, double) { return g / 4; });
}

TEST_CASE("an evicted worker's pulls are forgotten, and a new session has its own") {
  Plan plan = delay_plan(plan::LagScaled{1});
  plan.optimizer.whole_steps = true;
  ShardScene scene(job_of(plan));
  scene.admit_all();
  REQUIRE(scene.pull(kBehind, 0));
  scene.fence(kBehind);
  scene.remove(kBehind);
  run_fast(scene, 0, 3);
  scene.admit(kBehind, 3, Session(2));
  REQUIRE(scene.pull(kBehind, 3));
  run_fast(scene, 3, 5);
  const BlockFloats before = present(scene, kAhead, 5);
  scene.push_all(kBehind, 3);
  require_moved(scene, 3, before, present(scene, kBehind, 4),
                [](double g, double, double) { return g / 2; });
}

TEST_CASE("a standby is seeded with the open pulls of its primary") {
  const auto job = job_of(delay_plan(plan::DelayCompensated{.lambda = 2}));
  ShardScene primary(job);
  primary.admit_all();
  REQUIRE(primary.pull(kBehind, 0));
  run_fast(primary, 0, 3);
  REQUIRE(primary.pull(kBehind, 1, 0));
  Shard standby(job, ShardId(0), FirstState::zeros);
  REQUIRE(standby.restore(primary.shard().save()));
  const auto pulls_of = [](const Shard& shard) {
    const auto envelope = decode(shard.save());
    std::vector<msg::PulledVersion> pulls;
    for (const auto& block : std::get<msg::ShardState>(envelope->body).blocks)
      pulls.insert(pulls.end(), block.pulled.begin(), block.pulled.end());
    return pulls;
  };
  const auto before = pulls_of(primary.shard()), after = pulls_of(standby);
  REQUIRE(before.size() == 2 * job->layout->blocks().size());
  REQUIRE(after.size() == before.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    INFO("pull " << i << " of version " << before[i].weights.version << ", data "
                 << before[i].weights.data.size());
    CHECK(after[i].worker == before[i].worker);
    CHECK(after[i].iteration == before[i].iteration);
    CHECK(after[i].progress == before[i].progress);
    CHECK(after[i].weights.version == before[i].weights.version);
    REQUIRE(after[i].weights.data);
    CHECK(floats_of({.blocks = {after[i].weights}}) == floats_of({.blocks = {before[i].weights}}));
  }
}

}  // namespace leeway::test
