// The radial-directional merge against its formula, in doubles: divided tensors, embeddings,
// statistics, and directions of length 0.
#include "actors/shard/merge_directions.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "core/rng.hpp"
#include "kernels/executors.hpp"
#include "tests/support/text_task.hpp"

namespace leeway::test {
namespace {

constexpr std::size_t kSmallBlock = 300;  // bytes

std::vector<double> numbers(const Blob& blob, std::size_t begin, std::size_t count) {
  const float* values = blob.as_floats() + begin;
  return {values, values + count};
}

double norm(const std::vector<double>& values) {
  double squares = 0;
  for (const double one : values) squares += one * one;
  return std::sqrt(squares);
}

/// The sum of factor * direction.
std::vector<double> sum(const std::vector<std::vector<double>>& directions,
                        const std::vector<double>& factors) {
  std::vector<double> total(directions.front().size());
  for (std::size_t d = 0; d < directions.size(); ++d)
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += factors[d] * directions[d][i];
  return total;
}

std::vector<double> expected_merge(const std::vector<std::vector<double>>& directions,
                                   const std::vector<double>& weights) {
  double radius = 0, all = 0;
  std::vector<double> factors;
  for (std::size_t d = 0; d < directions.size(); ++d) {
    const double length = norm(directions[d]);
    radius += weights[d] * length;
    all += weights[d];
    factors.push_back(length > 0 ? weights[d] / length : 0);
  }
  auto merged = sum(directions, factors);
  const double length = norm(merged);
  for (double& one : merged) one *= length > 0 ? radius / all / length : 0;
  return merged;
}

std::vector<double> expected_mean(const std::vector<std::vector<double>>& directions,
                                  std::vector<double> weights) {
  double all = 0;
  for (const double one : weights) all += one;
  for (double& one : weights) one /= all;
  return sum(directions, weights);
}

/// Directions of the block, some of them zero in each tensor that `zero` selects.
std::vector<Direction> directions_of(const Block& block, const std::vector<double>& weights,
                                     const std::function<bool(std::size_t, int)>& zero) {
  std::vector<Direction> directions;
  for (std::size_t d = 0; d < weights.size(); ++d) {
    Rng rng = Rng::stream(7, block.id.value(), d);
    Blob values = Blob::floats(block.floats);
    for (std::int64_t i = 0; i < block.floats; ++i)
      values.mutable_floats()[i] = static_cast<float>(rng.uniform() - 0.5);
    for (const BlockSlice& slice : block.slices)
      if (zero(d, slice.parameter))
        std::fill_n(values.mutable_floats() + slice.offset, slice.floats, 0.0f);
    directions.push_back({std::move(values), weights[d]});
  }
  return directions;
}

void check_merge(const Model& model, const Layout& layout, const std::vector<double>& weights,
                 const std::function<bool(std::size_t, int)>& zero) {
  const auto on = *make_executor(Device{});
  for (const Block& block : layout.blocks()) {
    const auto directions = directions_of(block, weights, zero);
    const Blob merged = merge_directions(*on, model, block, directions);
    const std::string_view kind = model.layer(block.layer).kind();
    const bool mean = block.average > 0 || kind == "embedding" || kind == "positions";
    for (const BlockSlice& slice : block.slices) {
      const auto begin = static_cast<std::size_t>(slice.offset);
      const auto count = static_cast<std::size_t>(slice.floats);
      std::vector<std::vector<double>> values;
      for (const Direction& one : directions) values.push_back(numbers(one.values, begin, count));
      const auto expected = mean ? expected_mean(values, weights) : expected_merge(values, weights);
      const auto found = numbers(merged, begin, count);
      CAPTURE(std::string(kind), slice.parameter);
      for (std::size_t i = 0; i < expected.size(); ++i)
        REQUIRE(std::abs(found[i] - expected[i]) < 1e-5);
    }
  }
}

}  // namespace

TEST_CASE("each tensor, or part of a divided one, is merged by itself; embeddings get the mean") {
  const auto job = job_of(text_plan());
  const Layout layout(*job->model, 1, kSmallBlock);
  const auto parameters = job->model->parameters().size();
  CHECK(layout.blocks().size() > parameters);  // some tensors are divided
  for (const auto& weights : {std::vector{1.0}, {9.0, 2.25}, {4.0, 1.0, 0.25}})
    check_merge(*job->model, layout, weights, [](std::size_t, int) { return false; });
}

TEST_CASE("a direction of length 0 only makes the mean length smaller") {
  const auto job = job_of(text_plan());
  const Layout layout(*job->model, 1, kSmallBlock);
  const std::vector<double> weights = {4, 1, 1};
  check_merge(*job->model, layout, weights, [](std::size_t d, int) { return d == 1; });
  check_merge(*job->model, layout, weights, [](std::size_t, int) { return true; });
  check_merge(*job->model, layout, weights,
              [](std::size_t d, int parameter) { return (static_cast<int>(d) + parameter) % 2; });
}

TEST_CASE("statistics of batch norm get the mean") {
  Plan plan = tiny_plan();
  plan.model = {plan::Linear{6}, plan::BatchNorm{}, plan::Linear{3}};
  const auto job = job_of(plan);
  const auto& blocks = job->layout->blocks();
  CHECK(std::ranges::any_of(blocks, [](const Block& block) { return block.average > 0; }));
  check_merge(*job->model, *job->layout, {4.0, 1.0, 0.25}, [](std::size_t, int) { return false; });
}

}  // namespace leeway::test
