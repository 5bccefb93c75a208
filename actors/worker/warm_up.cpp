#include "actors/worker/warm_up.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>

#include "actors/worker/compute_work.hpp"

namespace leeway {
namespace {

/// Of the weights of a warm-up: no block reaches it, so no cache takes them for real ones.
constexpr Version kWarmUpVersion(std::numeric_limits<std::int64_t>::max());

}  // namespace

void warm_up_engine(const std::shared_ptr<const Job>& job, WorkerId worker,
                    const std::shared_ptr<ComputeEngine>& engine) {
  static std::atomic<const Job*> warm{nullptr};
  if (job->cost_only || job->profile || warm == job.get()) return;
  PulledWeights weights;
  for (const Block& block : job->layout->blocks()) {
    Blob& zeros = weights.blobs.emplace_back(Blob::floats(block.floats));
    std::fill_n(zeros.mutable_floats(), block.floats, 0.0f);
    weights.versions.push_back(kWarmUpVersion);
  }
  LeasedIteration batch;
  batch.end = std::min<std::int64_t>(job->plan.batch, job->data.train->size());
  auto bound = std::make_shared<DeviceWeights>(job, std::move(weights));
  ComputeWork work(job, worker, engine, task_of(*job, batch, std::move(bound), {}));
  for (int part = 0; part < work.parts(); ++part) work.run(part);
  warm = job.get();
}

}  // namespace leeway
