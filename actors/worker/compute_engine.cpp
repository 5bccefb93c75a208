#include "actors/worker/compute_engine.hpp"

#include <algorithm>
#include <utility>

#include "plan/local_steps.hpp"
#include "policies/balance/balance.hpp"
#include "policies/balance/micro_batches.hpp"
#include "policies/pipeline/endless.hpp"

namespace leeway {
namespace {

/// Whether the stage's schedule has a backward for inputs apart from the backward for weights.
bool splits_backward(const pipeline::Spec& spec, int stage) {
  if (spec.stages == 1) return false;
  const auto ops = pipeline::endless(spec, stage).again;
  return std::any_of(ops.begin(), ops.end(), [](const pipeline::Op& op) {
    return op.kind == pipeline::OpKind::backward_input;
  });
}

}  // namespace

std::int64_t MicroBatch::bytes() const {
  return (stash ? stash->bytes() : 0) + (gathered ? gathered->bytes() : 0);
}

std::shared_ptr<MicroBatch> make_micro_batch(const Job& job, const LeasedIteration& leased,
                                             std::int64_t index, std::int64_t count,
                                             std::shared_ptr<DeviceWeights> weights,
                                             Iteration pulled) {
  auto made = std::make_shared<MicroBatch>();
  const std::int64_t first = leased.begin + first_sample(leased.samples(), index, count);
  const std::int64_t end = leased.begin + first_sample(leased.samples(), index + 1, count);
  made->epoch = leased.epoch;
  if (job.cost_only) {
    made->samples.assign(static_cast<std::size_t>(end - first), 0);  // only their number matters
  } else {
    made->samples = job.orders->samples(made->epoch, first, end);
  }
  made->weights = std::move(weights);
  made->pulled = pulled;
  return made;
}

std::int64_t largest_share(const Job& job) {
  if (has_local_steps(job.plan)) return job.plan.batch;
  const std::int64_t workers = job.stages->grouped() ? job.stages->count() : 1;
  return (std::int64_t{largest_batch(job.plan)} + workers - 1) / workers;
}

ComputeEngine::ComputeEngine(std::shared_ptr<const Job> job, WorkerId worker)
    : job_(std::move(job)), on_(job_->executor(job_->devices.worker(worker.value()))) {
  const Plan& plan = job_->plan;
  const Stages& stages = *job_->stages;
  const StageShare& share = stages.computed_by(worker);
  // A worker computes each micro-batch from forward to backward before the next.
  const ChunkOptions options{
      .on = on_,
      .packed = job_->packed,
      .profile = job_->profile,
      .several = stages.piped(),
      .split_backward = splits_backward(stages.spec(), static_cast<int>(stages.stage_of(worker))),
      .recompute = share.recompute};
  const std::int64_t samples = stages.piped() ? largest_micro_batch(plan) : micro_batch_size(plan);
  const std::int64_t most = largest_share(*job_);
  const bool several = micro_batches_of(plan, most) > 1;
  for (const ModelChunk& chunk : share.chunks)
    chunks_.push_back(
        std::unique_ptr<Chunk>(new Chunk{{job_->model, chunk, samples, true, options},
                                         {job_->model, job_->layout, chunk, on_, several}}));
}

/// Other actors can get the memory as soon as it is returned.
ComputeEngine::~ComputeEngine() {
  on_->drain();
}

std::int64_t ComputeEngine::gradient_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& chunk : chunks_) bytes += chunk->sum.bytes();
  return bytes;
}

}  // namespace leeway
