#include "actors/worker/local_steps_work.hpp"

#include <cmath>
#include <utility>

#include "models/gradient_sum.hpp"
#include "plan/local_steps.hpp"
#include "policies/balance/micro_batches.hpp"

namespace leeway {
namespace {

/// Identifies weights that only one worker has. No shard counts so far.
Version local_version() {
  static std::atomic<std::int64_t> next{std::int64_t{1} << 62};
  return Version(next++);
}

}  // namespace

LocalStepsWork::LocalStepsWork(std::shared_ptr<const Job> job, WorkerId worker,
                               std::shared_ptr<ComputeEngine> engine,
                               std::shared_ptr<LocalOptimizer> optimizer, Iteration iteration,
                               LeasedIteration leased, PulledWeights pulled)
    : job_(std::move(job)),
      worker_(worker),
      engine_(std::move(engine)),
      optimizer_(std::move(optimizer)),
      iteration_(iteration),
      leased_(std::move(leased)),
      pulled_(std::move(pulled)),
      steps_(static_cast<int>(local_steps_of(job_->plan, leased_.samples()))),
      weights_(pulled_.blobs) {}

LeasedIteration LocalStepsWork::samples_of(int step) const {
  LeasedIteration samples{.epoch = leased_.epoch};
  samples.begin = leased_.begin + first_sample(leased_.samples(), step, steps_);
  samples.end = leased_.begin + first_sample(leased_.samples(), step + 1, steps_);
  return samples;
}

ComputeWork LocalStepsWork::gradient_of(int step, std::vector<Blob> weights) const {
  PulledWeights own{std::move(weights), pulled_.versions};
  if (step > 0) own.versions.assign(own.versions.size(), local_version());
  auto bound = std::make_shared<DeviceWeights>(job_, std::move(own));
  return {job_, worker_, engine_, task_of(*job_, samples_of(step), std::move(bound), iteration_)};
}

Cost LocalStepsWork::cost(int part) const {
  if (cancelled_) return {};
  const ComputeWork gradient = gradient_of(part, std::vector<Blob>(weights_.size()));
  Cost cost;
  for (int piece = 0; piece < gradient.parts(); ++piece) {
    const Cost one = gradient.cost(piece);
    cost.flops += one.flops;
    cost.bytes += one.bytes;
    if (part + 1 == parts()) cost.bytes_apart += gradient.push_encoding_bytes(piece);
  }
  if (part == 0) cost.bytes_apart += gradient.pull_decoding_bytes();
  cost.flops += optimizer_->floats_of_step();
  cost.bytes += optimizer_->floats_of_step() * static_cast<std::int64_t>(sizeof(float));
  return cost;
}

void LocalStepsWork::run(int part) {
  if (cancelled_ || !diverged_layer_.empty()) return;
  if (part == 0 && engine_) {
    for (Blob& blob : weights_) blob = engine_->executor().fetch(blob);
    pulled_.blobs = weights_;
  }
  std::vector<Blob> gradients = computed(part);
  if (job_->cost_only || !diverged_layer_.empty()) return;
  optimizer_->step(engine_->executor(), weights_, std::move(gradients),
                   progress_at(samples_of(part).begin));
  if (part + 1 == parts()) finish();
}

double LocalStepsWork::progress_at(std::int64_t position) const {
  const auto size = static_cast<double>(job_->data.train->size());
  auto samples = static_cast<double>(position);
  if (job_->split) {  // relative to the worker's data share
    const std::uint32_t share = job_->split->share_of(position);
    samples = (samples - static_cast<double>(job_->split->begins[share])) * size /
              static_cast<double>(job_->split->size_of(share));
  }
  return static_cast<double>(leased_.epoch.value()) * size + samples;
}

std::vector<Blob> LocalStepsWork::computed(int step) {
  ComputeWork gradient = gradient_of(step, weights_);
  std::vector<Blob> gradients(weights_.size());
  for (int part = 0; part < gradient.parts(); ++part) {
    gradient.run(part);
    for (const int layer : gradient.layers_of(part)) {
      if (step + 1 == steps_) layers_.push_back(layer);
      for (const Block& block : job_->layout->blocks())
        if (block.layer == layer) gradients[block.id.value()] = gradient.take_gradient(block.id);
    }
  }
  const double share = mean_scale(samples_of(step).samples(), leased_.samples());
  result_.loss += gradient.result().loss * share;
  result_.correct += gradient.result().correct;
  diverged_layer_ = gradient.diverged_layer();
  if (!diverged_layer_.empty()) result_.loss = gradient.result().loss;
  return gradients;
}

void LocalStepsWork::finish() {
  Executor& on = engine_->executor();
  for (const Block& block : job_->layout->blocks()) {
    const Blob before = std::move(pulled_.blobs[block.id.value()]);
    const Blob after = std::move(weights_[block.id.value()]);
    Blob pushed = on.floats(block.floats);
    kernels::UpdateBuffers buffers{
        .count = block.floats, .w_out = pushed.mutable_floats(), .w = before.as_floats()};
    buffers.g = after.as_floats();
    kernels::SgdFormula formula{1, 0};  // before - after
    if (block.average > 0) {
      // after = kept * before + (1 - kept) * average of the steps
      const double kept = std::pow(1 - block.average, steps_);
      formula = {static_cast<float>(kept / (1 - kept)), -1};
      std::swap(buffers.w, buffers.g);
    }
    on.update(buffers, formula);
    for (const Blob& read : {before, after}) on.end_read(read);
    on.end_write(pushed);
    weights_[block.id.value()] = std::move(pushed);
  }
}

std::vector<int> LocalStepsWork::layers_of(int part) const {
  return part + 1 == parts() ? layers_ : std::vector<int>();
}

Blob LocalStepsWork::take_gradient(BlockId block) {
  if (job_->cost_only) return job_->no_gradients[block.value()];
  return std::move(weights_[block.value()]);
}

}  // namespace leeway
