#include "actors/stage/stage_pass.hpp"

#include <algorithm>
#include <cmath>

#include "core/check.hpp"
#include "core/rng.hpp"
#include "models/pieces.hpp"
#include "policies/balance/micro_batches.hpp"
#include "policies/pipeline/endless.hpp"

namespace leeway {

using pipeline::OpKind;

namespace {

/// Floats of a micro-batch that cross the model before layer `end`.
std::int64_t floats_between(const Model& model, int end, std::int64_t samples) {
  return samples * (end == 0 ? model.input() : model.output_of(end - 1)).count();
}

}  // namespace

// ---- weights ----

BoundWeights::BoundWeights(std::shared_ptr<const Job> job, PulledWeights pulled)
    : job_(std::move(job)),
      blobs_(std::move(pulled.blobs)),
      versions_(std::move(pulled.versions)),
      keys_(job_->model->parameters().size()),
      slices_(*job_->model, *job_->layout, std::vector<const float*>(blobs_.size(), nullptr)) {
  for (const auto& block : job_->layout->blocks())
    for (const auto& slice : block.slices) {
      auto& key = keys_[static_cast<std::size_t>(slice.parameter)];
      key = mix64(key ^ static_cast<std::uint64_t>(versions_[block.id.value()].value()));
    }
}

BoundWeights::~BoundWeights() {
  for (const auto& block : job_->layout->blocks()) release(block.id);
}

void BoundWeights::bind(const std::shared_ptr<Executor>& on) {
  if (on_) return;
  on_ = on;
  for (const auto& block : job_->layout->blocks()) {
    auto& blob = blobs_[block.id.value()];
    if (!blob) continue;
    blob = on_->fetch(blob);
    slices_.set_block(*job_->layout, block.id, blob.as_floats());
  }
}

void BoundWeights::release(BlockId block) {
  auto& blob = blobs_[block.value()];
  if (!blob) return;
  if (on_) on_->end_read(blob);
  blob.reset();
}

std::int64_t BoundWeights::bytes() const {
  std::size_t bytes = 0;
  for (const Blob& blob : blobs_) bytes += blob.size();
  return static_cast<std::int64_t>(bytes);
}

// ---- what a stage computes with ----

std::int64_t StageMicroBatch::bytes() const {
  return (stash ? stash->bytes() : 0) + (gathered ? gathered->bytes() : 0);
}

std::int64_t StagePass::gradient_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& chunk : chunks_) bytes += chunk->sum.bytes();
  return bytes;
}

StagePass::StagePass(std::shared_ptr<const Job> job, WorkerId worker)
    : job_(std::move(job)),
      most_(largest_micro_batch(job_->plan)),
      on_(job_->executor(job_->devices.worker(worker.value()))) {
  const StageShare& share = job_->stages->share_of(worker);
  const auto stage = static_cast<int>(job_->stages->stage_of(worker));
  const pipeline::Spec& spec = job_->stages->spec();
  const auto ops = pipeline::endless(spec, stage).again;
  const bool halves = std::any_of(ops.begin(), ops.end(), [](const pipeline::Op& op) {
    return op.kind == OpKind::backward_input;
  });
  const PartOptions options{.on = on_,
                            .packed = job_->packed,
                            .profile = job_->profile,
                            .halves = halves,
                            .recompute = share.recompute};
  for (const ModelChunk& part : share.chunks)
    chunks_.push_back(std::make_unique<Chunk>(*job_, part, most_, options));
}

StagePass::Chunk::Chunk(const Job& job, const ModelChunk& part, std::int64_t most,
                        const PartOptions& options)
    : pass(job.model, part, most, true, options),
      sum(job.model, job.layout, part, options.on, job.plan.micro_batches > 1) {}

StagePass::~StagePass() {
  on_->drain();
}

// ---- one operation ----

StageWork::StageWork(std::shared_ptr<const Job> job, WorkerId worker,
                     std::shared_ptr<StagePass> pass, Task task)
    : job_(std::move(job)), worker_(worker), pass_(std::move(pass)), task_(std::move(task)) {
  LW_CHECK(pass_ || job_->cost_only);
  LW_CHECK(task_.micro_batch && task_.micro_batch->size() > 0);
  gradients_.resize(task_.ends ? job_->layout->blocks().size() : 0);
  if (!task_.ends || task_.kind != OpKind::backward) return;
  for (int layer = range().end - 1; layer >= range().first; --layer)
    if (job_->model->has_weights(layer)) layers_.push_back(layer);
}

Cost StageWork::cost(int part) const {
  std::int64_t flops = 0;
  for (int layer = range().first; layer < range().end; ++layer)
    flops += job_->model->layer(layer).flops();
  flops *= task_.micro_batch->size();
  // Each half of a backward computes as much as forward, and so does forward again.
  int passes = task_.kind == OpKind::backward ? 2 : 1;
  if (share().recompute && pipeline::gives_input_gradient(task_.kind)) ++passes;
  const bool reads = task_.kind == OpKind::forward && is_first();
  return {flops * passes / parts(),
          reads && part == 0 ? floats_between(*job_->model, 0, task_.micro_batch->size()) * 4 : 0};
}

void StageWork::run(int part) {
  if (job_->cost_only) {
    if (part + 1 == parts()) pretend();
    return;
  }
  try {
    compute(part);
  } catch (...) {
    pass_->on_->drain();  // our blobs go back to their pools, and may be under work
    throw;
  }
}

void StageWork::pretend() {
  const bool forward = task_.kind == OpKind::forward;
  const bool sends =
      forward ? !is_last() : pipeline::gives_input_gradient(task_.kind) && !is_first();
  const int end = forward ? range().end : range().first;
  if (sends) output_ = job_->zeros(floats_between(*job_->model, end, task_.micro_batch->size()));
}

void StageWork::compute(int part) {
  if (part == 0) task_.micro_batch->held = 0;
  task_.micro_batch->weights->bind(pass_->on_);
  if (task_.kind == OpKind::forward) return forward();
  if (diverged_layer_.empty()) backward(part);
}

void StageWork::forward() {
  StageMicroBatch& of = *task_.micro_batch;
  PartPass& pass = pass_->chunks_[static_cast<std::size_t>(task_.chunk)]->pass;
  of.stash = &pass.take_stash();
  PartInput input;
  Profile::Timer timer(job_->profile.get(), *pass_->on_);
  of.gathered = std::make_unique<GatheredBatch>(pass_->on_, of.size());
  input.batch = is_last() ? of.gathered->gather_labels(*job_, of.epoch, of.samples)
                          : of.gathered->gather_keys(*job_, of.epoch, of.samples);
  if (is_first()) {
    task_.input = gather_samples(*job_, *pass_->on_, of.samples, input.batch.sample_keys);
    timer.end("data", "gather", 0,
              static_cast<double>(2 * floats_between(*job_->model, 0, of.size()) * 4));
  }
  input.input = std::move(task_.input);
  output_ = pass.start_forward(*of.stash, input, of.weights->views(), of.weights->keys());
  note_held();
}

void StageWork::note_held(std::size_t besides) {
  StageMicroBatch& of = *task_.micro_batch;
  const std::int64_t held = of.bytes() + of.weights->bytes() + pass_->gradient_bytes();
  of.held = std::max(of.held, held - static_cast<std::int64_t>(besides));
}

void StageWork::backward(int part) {
  StageMicroBatch& of = *task_.micro_batch;
  auto& chunk = *pass_->chunks_[static_cast<std::size_t>(task_.chunk)];
  const auto weights = of.weights->views();
  const Half half = task_.kind == OpKind::backward         ? Half::both
                    : task_.kind == OpKind::backward_input ? Half::inputs
                                                           : Half::weights;
  if (part == 0) {
    if (task_.begins) chunk.sum.start(task_.samples, task_.micro_batches);
    const std::size_t read = task_.input.size();
    chunk.pass.start_backward(*of.stash, half, std::move(task_.input), weights);
    note_held(read);  // before gradients that are done, and weights that nobody reads again, go
  }
  const bool last = part + 1 == parts();
  const int from = part == 0 ? range().end - 1 : layers_[static_cast<std::size_t>(part) - 1] - 1;
  const int to = last ? range().first : layers_[static_cast<std::size_t>(part)];
  for (int layer = from; layer >= to; --layer) {
    chunk.pass.backward_layer(*of.stash, layer, weights, chunk.sum.views());
    if (chunk.pass.writes_gradients(layer, half)) chunk.sum.add(layer, of.size());
  }
  // Asked for last, so that a GPU has work while the processor waits for the loss.
  if (part == 0 && is_last() && half != Half::weights) look_at_loss();
  if (!diverged_layer_.empty()) return;
  for (const int layer : layers_of(part)) hand_over(layer);
  if (!last) return;
  output_ = chunk.pass.finish_backward(*of.stash);
  if (half == Half::inputs) return note_held();
  chunk.pass.release(*of.stash);
  pass_->on_->wait_mark();  // a GPU may not have read all of it yet
  of.gathered.reset();
}

void StageWork::look_at_loss() {
  StageMicroBatch& of = *task_.micro_batch;
  PartPass& pass = pass_->chunks_[static_cast<std::size_t>(task_.chunk)]->pass;
  result_ = pass.result(*of.stash);
  if (std::isfinite(result_.loss)) return;
  const int layer = pass.first_non_finite_layer(*of.stash, of.weights->views());
  diverged_layer_ = layer < job_->model->layers() ? job_->model->layer_name(layer) : "the loss";
}

std::vector<int> StageWork::layers_of(int part) const {
  if (!task_.ends) return {};
  if (!layers_.empty()) return {layers_[static_cast<std::size_t>(part)]};
  std::vector<int> all;
  for (int layer = range().end - 1; layer >= range().first; --layer)
    if (job_->model->has_weights(layer)) all.push_back(layer);
  return all;
}

void StageWork::hand_over(int layer) {
  auto& sum = pass_->chunks_[static_cast<std::size_t>(task_.chunk)]->sum;
  Executor& on = *pass_->on_;
  for (const auto& at : share().at)
    for (const auto& part : at.parts) {
      if (part.layer != layer) continue;
      for (const BlockId block : part.blocks) {
        gradients_[block.value()] = sum.take(block);
        on.end_write(gradients_[block.value()]);
        if (task_.releases) task_.micro_batch->weights->release(block);
      }
    }
}

Blob StageWork::take_gradient(BlockId block) {
  if (job_->cost_only) return job_->no_gradients[block.value()];
  return std::move(gradients_[block.value()]);
}

}  // namespace leeway
