#pragma once
// Helpers for tests of a shard's components: a recording sink, pushes, and workers.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "actors/shard/clock_table.hpp"
#include "actors/shard/push_sink.hpp"
#include "tests/support/recording_outbox.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {

const WorkerId kA(0), kB(1), kC(2);

/// Names a push by its worker and its iteration.
using PushName = std::pair<std::uint32_t, std::int64_t>;

inline PushName name_of(const Contribution& push) {
  return {push.worker.value(), push.iteration.value()};
}

/// Records the names of pushes, and the weights of those that are applied.
class RecordingSink final : public PushSink {
 public:
  void apply(std::vector<Contribution> contributions, Outbox&) override {
    auto& update = updates.emplace_back();
    for (const auto& push : contributions) {
      update.push_back(name_of(push));
      weights.push_back(push.weight);
    }
  }
  void drop(const Contribution& push, Outbox&) override { dropped.push_back(name_of(push)); }
  void forget(const Contribution& push) override { forgotten.push_back(name_of(push)); }

  std::vector<std::vector<PushName>> updates;
  std::vector<PushName> dropped, forgotten;
  std::vector<double> weights;
};

/// A push with one block, or with no block if `empty`.
inline Contribution push_of(WorkerId worker, std::int64_t iteration, std::uint32_t bucket = 0,
                            bool empty = false) {
  Contribution push{.worker = worker,
                    .session = Session(1),
                    .iteration = Iteration(iteration),
                    .bucket = bucket,
                    .shard_bucket = bucket};
  if (!empty) push.blocks.resize(1);
  return push;
}

/// The gradient of a block on its first weights: all elements are 1.
inline msg::BlockData gradient_of_ones(const Job& job, BlockId id) {
  const std::int64_t floats = job.layout->block(id).floats;
  Blob data = Blob::floats(floats);
  std::fill_n(data.mutable_floats(), floats, 1.0f);
  return {id, Version(), DType::f32, Shape{floats}, std::move(data)};
}

/// One shard with three buckets.
inline std::shared_ptr<const Job> one_shard_job() {
  Plan plan = tiny_plan();
  plan.shards = 1;
  return job_of(plan);
}

/// Workers 0 to count - 1, at iteration 0.
inline void admit_workers(ClockTable& clocks, std::uint32_t count) {
  for (std::uint32_t worker = 0; worker < count; ++worker)
    clocks.admit(WorkerId(worker), Session(1), Iteration(0));
}

}  // namespace leeway::test
