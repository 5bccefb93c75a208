// A shard whose workers take local steps.
#include <catch2/catch.hpp>

#include <cmath>

#include "tests/actors/shard_scene.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {
namespace {

/// Two workers with iterations of four batches of two samples; batch norm has statistics.
Plan local_plan(plan::Consistency consistency) {
  Plan plan = tiny_plan();
  plan.model = {plan::Linear{6}, plan::BatchNorm{}, plan::Linear{3}};
  plan.batch = 3;
  plan.consistency = consistency;
  plan.workers = 2;
  plan.shards = 1;
  plan.local_steps.count = 4;
  return plan;
}

void push_delta(ShardScene& scene, WorkerId worker, std::uint32_t samples) {
  const std::uint32_t round = 2 * 4 * scene.job().plan.batch;
  for (std::uint32_t bucket = 0; bucket < scene.share_of(worker).buckets.size(); ++bucket) {
    msg::Push push = scene.push_of(worker, 0, bucket);
    push.kind = msg::Push::Kind::delta;
    push.samples = samples;
    push.weight = static_cast<double>(samples) / round;
    scene.push(worker, std::move(push));
  }
}

/// Both workers pull; returns the weights by block.
auto pull_both(ShardScene& scene, WorkerId first, WorkerId second) {
  scene.admit_all();
  REQUIRE(scene.pull(first, 0));
  REQUIRE(scene.pull(second, 0));
  return floats_of(msg::SnapshotState{.blocks = scene.weights(first, 0)});
}

}  // namespace

TEST_CASE("each worker counts equally, whatever the number of its local steps", "[local]") {
  for (const plan::Consistency& consistency :
       {plan::Consistency(plan::Bsp{}), plan::Consistency(plan::Asp{})}) {
    ShardScene scene(job_of(local_plan(consistency)));
    const WorkerId whole(0), brief(1);
    const auto before = pull_both(scene, whole, brief);
    push_delta(scene, whole, 12);
    push_delta(scene, brief, 2);  // one step
    const auto after = floats_of(scene.finish());
    for (const auto& [id, w] : before) {
      const Block& block = scene.job().layout->block(id);
      const Blob first = gradient_of(scene.job(), id, whole, 0);
      const Blob second = gradient_of(scene.job(), id, brief, 0);
      for (std::size_t i = 0; i < w.size(); ++i) {
        const double a = static_cast<double>(first.as_floats()[i]);
        const double b = static_cast<double>(second.as_floats()[i]);
        double expected = static_cast<double>(w[i]) - (a + b) / 2;
        if (block.average > 0 && consistency.index() == 0) {
          // Five steps of two workers: two and a half of one.
          const double kept = std::pow(1 - block.average, 2.5);
          expected = kept * static_cast<double>(w[i]) + (1 - kept) * (a + b) / 2;
        } else if (block.average > 0) {
          const double half = std::sqrt(1 - block.average);
          const double then = std::pow(half, 4) * (static_cast<double>(w[i]) - a) + a;
          expected = half * (then - b) + b;
        }
        CAPTURE(consistency.index(), block.average, i);
        CHECK(std::abs(static_cast<double>(after.at(id)[i]) - expected) < 1e-5);
      }
    }
  }
}

TEST_CASE("radial-directional merge keeps the mean length of the pseudo-gradients", "[local]") {
  Plan plan = local_plan(plan::Bsp{});
  plan.local_steps.merge = plan::Merge::radial_directional;
  ShardScene scene(job_of(plan));
  const WorkerId whole(0), brief(1);
  const auto before = pull_both(scene, whole, brief);
  push_delta(scene, whole, 12);
  push_delta(scene, brief, 6);
  const auto after = floats_of(scene.finish());
  const double weight[] = {12.0 * 12 / 4, 6.0 * 6 / 2};  // samples^2 / steps
  std::size_t tensors = 0;
  for (const auto& [id, w] : before) {
    const Block& block = scene.job().layout->block(id);
    if (block.average > 0) continue;
    const Blob pushed[] = {gradient_of(scene.job(), id, whole, 0),
                           gradient_of(scene.job(), id, brief, 0)};
    for (const BlockSlice& slice : block.slices) {
      const auto begin = static_cast<std::size_t>(slice.offset);
      const auto end = begin + static_cast<std::size_t>(slice.floats);
      const auto at = [&](int worker, std::size_t i) {
        return static_cast<double>(pushed[worker].as_floats()[i]);
      };
      double norm[2] = {0, 0}, sum = 0;
      for (const int worker : {0, 1}) {
        for (std::size_t i = begin; i < end; ++i) norm[worker] += at(worker, i) * at(worker, i);
        norm[worker] = std::sqrt(norm[worker]);
        REQUIRE(norm[worker] > 0);
      }
      const auto direction = [&](std::size_t i) {
        return weight[0] * at(0, i) / norm[0] + weight[1] * at(1, i) / norm[1];
      };
      for (std::size_t i = begin; i < end; ++i) sum += direction(i) * direction(i);
      const double radius = (weight[0] * norm[0] + weight[1] * norm[1]) / (weight[0] + weight[1]);
      for (std::size_t i = begin; i < end; ++i) {
        CAPTURE(slice.parameter, i);
        const double expected = static_cast<double>(w[i]) - radius / std::sqrt(sum) * direction(i);
        CHECK(std::abs(static_cast<double>(after.at(id)[i]) - expected) < 1e-5);
      }
      ++tensors;
    }
  }
  CHECK(tensors == 6);
}

}  // namespace leeway::test
