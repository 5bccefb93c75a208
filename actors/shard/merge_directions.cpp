#include "actors/shard/merge_directions.hpp"

#include <cmath>
#include <string_view>

namespace leeway {
namespace {

/// A tensor or a part of one, within a block.
struct TensorPart {
  std::int64_t offset, floats;
};

/// to = the sum of scale * direction over the directions.
template <class Scale>
void weighted_sum(Executor& on, float* to, TensorPart part,
                  const std::vector<Direction>& directions, Scale scale) {
  bool first = true;
  for (const Direction& one : directions) {
    on.accumulate(to, one.values.as_floats() + part.offset, static_cast<float>(scale(one)),
                  part.floats, first ? kernels::Write::assign : kernels::Write::add);
    first = false;
  }
}

double length(Executor& on, const float* values, std::int64_t count) {
  return std::sqrt(on.sum_of_squares(values, count));
}

void merge(Executor& on, float* to, TensorPart part, const std::vector<Direction>& directions,
           double total) {
  double radius = 0;
  weighted_sum(on, to, part, directions, [&](const Direction& one) {
    const double norm = length(on, one.values.as_floats() + part.offset, part.floats);
    radius += one.weight * norm / total;
    return norm > 0 ? one.weight / norm : 0;
  });
  const double sum = length(on, to, part.floats);
  const double scale = sum > 0 ? radius / sum : 0;
  on.accumulate(to, to, static_cast<float>(scale), part.floats, kernels::Write::assign);
}

}  // namespace

Blob merge_directions(Executor& on, const Model& model, const Block& block,
                      const std::vector<Direction>& directions) {
  double total = 0;
  for (const Direction& one : directions) total += one.weight;
  Blob merged = on.floats(block.floats);
  const std::string_view kind = model.layer(block.layer).kind();
  if (block.average > 0 || kind == "embedding" || kind == "positions") {
    weighted_sum(on, merged.mutable_floats(), {0, block.floats}, directions,
                 [&](const Direction& one) { return one.weight / total; });
  } else {
    on.zero(merged.mutable_data(), merged.size());
    for (const BlockSlice& slice : block.slices)
      merge(on, merged.mutable_floats() + slice.offset, {slice.offset, slice.floats}, directions,
            total);
  }
  for (const Direction& one : directions) on.end_read(one.values);
  return merged;
}

}  // namespace leeway
