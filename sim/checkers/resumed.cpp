#include "sim/checkers/resumed.hpp"

#include <algorithm>

#include "checkpoint/store.hpp"

namespace leeway::sim {

std::int64_t resumed_clock(const Job& job, std::uint32_t pipeline) {
  if (!job.resumed) return 0;
  const auto& ends = job.resumed->manifest.scheduler.pipelines;
  if (pipeline < ends.size()) return ends[pipeline].value();
  return ends.empty() ? 0 : std::min_element(ends.begin(), ends.end())->value();
}

std::int64_t resumed_min_clock(const Job& job) {
  std::int64_t least = resumed_clock(job, 0);
  for (std::uint32_t pipeline = 1; pipeline < job.stages->pipelines(); ++pipeline)
    least = std::min(least, resumed_clock(job, pipeline));
  return least;
}

std::int64_t resumed_bound(const Job& job) {
  const auto moves = [](const plan::Consistency& policy) {
    return std::holds_alternative<plan::Adaptive>(policy) ||
           std::holds_alternative<plan::Automatic>(policy);
  };
  if (!job.resumed || !moves(job.plan.consistency) || !moves(job.resumed->plan.consistency))
    return job.consistency->first_bound();
  const std::int64_t stored = job.resumed->manifest.scheduler.bound.staleness;
  return std::clamp(stored, job.consistency->bound(), job.consistency->largest_bound());
}

std::int64_t resumed_version(const Job& job, const Block& block) {
  if (!job.resumed) return 0;
  std::int64_t version = 0;
  for (const auto& slice : block.slices)
    for (const auto& rows :
         job.resumed->parameters[static_cast<std::size_t>(slice.parameter)].rows) {
      const bool apart =
          rows.first + rows.count <= slice.first_row || slice.first_row + slice.rows <= rows.first;
      if (!apart) version = std::max(version, rows.version.value());
    }
  return version;
}

void insert_resumed(const Job& job, SampleSet& samples) {
  if (!job.resumed) return;
  const auto& supply = job.resumed->manifest.scheduler.supply;
  const std::int64_t size = job.data.train->size();
  auto returned = supply.returned;
  std::sort(returned.begin(), returned.end(), [](const auto& one, const auto& other) {
    return std::pair(one.epoch, one.begin) < std::pair(other.epoch, other.begin);
  });
  // Trained of a data share: all fresh samples but the returned ones.
  const auto insert_share = [&](std::int64_t share_begin, std::int64_t share_size,
                                std::int64_t fresh) {
    for (std::int64_t first = 0; first < fresh; first += share_size) {
      const Epoch epoch(first / share_size);
      const std::int64_t end = share_begin + std::min(share_size, fresh - first);
      std::int64_t begin = share_begin;
      for (const auto& range : returned) {
        if (range.epoch != epoch || range.end <= begin || range.begin >= end) continue;
        if (begin < range.begin) samples.insert(epoch, begin, range.begin);
        begin = range.end;
      }
      if (begin < end) samples.insert(epoch, begin, end);
    }
  };
  if (supply.fresh_of_parts.empty()) return insert_share(0, size, supply.fresh);
  for (std::uint32_t share = 0; share < supply.fresh_of_parts.size(); ++share)
    insert_share(job.split->begins[share], job.split->size_of(share), supply.fresh_of_parts[share]);
}

std::vector<float> first_values(const Job& job, int parameter) {
  const auto index = static_cast<std::size_t>(parameter);
  const auto count = static_cast<std::size_t>(job.model->parameters()[index].spec.shape.count());
  std::vector<float> values(count);
  if (job.resumed) {
    std::copy_n(job.resumed->parameters[index].weights.as_floats(), count, values.data());
  } else {
    job.initial_values(parameter, values.data());
  }
  return values;
}

}  // namespace leeway::sim
