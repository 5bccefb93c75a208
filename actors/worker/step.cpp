#include "actors/worker/step.hpp"

#include <algorithm>
#include <cmath>

#include "core/check.hpp"
#include "core/rng.hpp"
#include "policies/balance/balance.hpp"
#include "policies/balance/micro_batches.hpp"

namespace leeway {

StepBuffers::StepBuffers(std::shared_ptr<const Job> job, WorkerId worker)
    : job_(std::move(job)),
      micro_batch_(micro_batch_size(job_->plan)),
      on_(job_->executor(job_->devices.worker(worker.value()))),
      pass_(job_->model, micro_batch_, true,
            {.on = on_, .packed = job_->packed, .profile = job_->profile}),
      batch_(on_, micro_batch_),
      weight_slices_(*job_->model, *job_->layout,
                     std::vector<const float*>(job_->layout->blocks().size(), nullptr)),
      gradients_(job_->model, job_->layout, ModelChunk::whole(*job_->model), on_,
                 job_->plan.micro_batches > 1 || largest_batch(job_->plan) > job_->plan.batch) {}

/// Others may get this memory as soon as it is given back.
StepBuffers::~StepBuffers() {
  on_->drain();
}

Step::Step(std::shared_ptr<const Job> job, std::shared_ptr<StepBuffers> buffers,
           Iteration iteration, StepSamples samples, std::vector<Blob> weights,
           std::span<const Version> versions)
    : job_(std::move(job)),
      buffers_(std::move(buffers)),
      iteration_(iteration),
      samples_(std::move(samples)),
      weights_(std::move(weights)),
      versions_(versions.begin(), versions.end()) {
  const Model& model = *job_->model;
  const Layout& layout = *job_->layout;
  LW_CHECK(!samples_.samples.empty());
  LW_CHECK(buffers_ || job_->cost_only);
  LW_CHECK(weights_.size() == layout.blocks().size(), weights_.size());
  LW_CHECK(versions_.size() == layout.blocks().size(), versions_.size());
  for (int layer = model.layers() - 1; layer >= 0; --layer)
    if (model.first_parameter(layer) < model.first_parameter(layer + 1)) layers_.push_back(layer);
  pieces_ = micro_batches_of(job_->plan, total());
  gradients_.resize(layout.blocks().size());
}

Cost Step::cost(int part) const {
  const std::int64_t all = 3 * job_->model->flops_per_sample() * total();
  return {all / parts(), part == 0 ? total() * job_->model->input().count() * 4 : 0};
}

void Step::run(int part) {
  if (job_->cost_only) return pretend(part);
  try {
    compute(part);
  } catch (...) {
    buffers_->on_->drain();  // our blobs go back to their pools, and may be under work
    throw;
  }
}

void Step::pretend(int part) {
  for (const auto& block : job_->layout->blocks()) {
    if (block.layer != layer_of(part)) continue;
    gradients_[block.id.value()] = job_->no_gradients[block.id.value()];
    weights_[block.id.value()].reset();
  }
}

void Step::compute(int part) {
  const std::int64_t last = pieces_ - 1;
  if (part == 0) {
    bind_memory();
    for (std::int64_t piece = 0; piece < last; ++piece) {
      start_forward(piece);
      for (int other = 0; other < parts(); ++other) {
        backward(other);
        add_piece(layer_of(other), piece);
      }
      if (!finish_forward(piece)) return;
    }
    start_forward(last);
  }
  if (!diverged_layer_.empty()) return;
  backward(part);
  if (pieces_ > 1) add_piece(layer_of(part), last);
  hand_over(part);
  // Asked for last, so that a GPU has work while the processor waits for the loss.
  if (part == 0) finish_forward(last);
}

void Step::bind_memory() {
  const Job& job = *job_;
  Executor& on = *buffers_->on_;
  auto& versions = buffers_->versions_;
  versions.assign(job.model->parameters().size(), 0);
  for (const auto& block : job.layout->blocks()) {
    const auto index = block.id.value();
    weights_[index] = on.fetch(weights_[index]);
    buffers_->weight_slices_.set_block(*job.layout, block.id, weights_[index].as_floats());
    for (const auto& slice : block.slices) {
      auto& version = versions[static_cast<std::size_t>(slice.parameter)];
      version = mix64(version ^ static_cast<std::uint64_t>(versions_[index].value()));
    }
  }
  buffers_->gradients_.start(total(), pieces_);
}

void Step::hand_over(int part) {
  for (const auto& block : job_->layout->blocks()) {
    if (block.layer != layer_of(part)) continue;
    const auto index = block.id.value();
    gradients_[index] = buffers_->gradients_.take(block.id);
    buffers_->on_->end_write(gradients_[index]);
    // Nobody reads these weights again: without this reference their next update can run in place.
    buffers_->on_->end_read(weights_[index]);
    weights_[index].reset();
  }
}

void Step::start_forward(std::int64_t piece) {
  const std::int64_t first = first_of(piece), count = first_of(piece + 1) - first;
  const Job& job = *job_;
  Profile::Timer timer(job.profile.get(), *buffers_->on_);
  const std::span samples(samples_.samples.data() + first, static_cast<std::size_t>(count));
  const Batch batch = buffers_->batch_.gather(job, samples_.epoch, samples);
  timer.end("data", "gather", 0, static_cast<double>(2 * count * job.model->input().count() * 4));
  buffers_->pass_.start_forward(batch, buffers_->weight_slices_.views(), buffers_->versions_);
}

bool Step::finish_forward(std::int64_t piece) {
  const PassResult result = buffers_->pass_.result();
  const auto count = static_cast<double>(first_of(piece + 1) - first_of(piece));
  loss_ += result.loss * (count / static_cast<double>(total()));
  correct_ += result.correct;
  if (std::isfinite(result.loss)) return true;
  loss_ = result.loss;
  const Model& model = *job_->model;
  const int layer = buffers_->pass_.first_non_finite_layer();
  diverged_layer_ = layer < model.layers() ? model.layer_name(layer) : "the loss";
  return false;
}

void Step::backward(int part) {
  const int from = part == 0 ? job_->model->layers() - 1 : layer_of(part - 1) - 1;
  for (int layer = from; layer >= layer_of(part); --layer)
    buffers_->pass_.backward(layer, buffers_->weight_slices_.views(), buffers_->gradients_.views());
}

}  // namespace leeway
