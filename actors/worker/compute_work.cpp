#include "actors/worker/compute_work.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "core/check.hpp"
#include "models/pieces.hpp"
#include "policies/balance/micro_batches.hpp"

namespace leeway {

using pipeline::OpKind;

namespace {

/// Floats of a micro-batch between layers `end - 1` and `end`.
std::int64_t floats_before(const Model& model, int end, std::int64_t samples) {
  return samples * model.output_of(end - 1).count();
}

BackwardFor purpose_of(OpKind kind) {
  if (kind == OpKind::backward_input) return BackwardFor::inputs;
  if (kind == OpKind::backward_weights) return BackwardFor::weights;
  return BackwardFor::both;
}

}  // namespace

ComputeWork::ComputeWork(std::shared_ptr<const Job> job, WorkerId worker,
                         std::shared_ptr<ComputeEngine> engine, Task task)
    : job_(std::move(job)), worker_(worker), engine_(std::move(engine)), task_(std::move(task)) {
  LW_CHECK(engine_ || job_->cost_only);
  LW_CHECK(!task_.operations.empty());
  for (const Operation& op : task_.operations) {
    LW_CHECK(op.micro_batch && op.micro_batch->size() > 0);
    if (pipeline::gives_input_gradient(op.kind)) loss_samples_ += op.micro_batch->size();
  }
  if (!task_.ends) return;
  gradients_.resize(job_->layout->blocks().size());
  if (last().kind == OpKind::backward && !job_->pushes_at_end()) layers_ = completed_layers();
}

/// Layers of the last operation's chunk that have buckets, from the last to the first.
std::vector<int> ComputeWork::completed_layers() const {
  std::vector<int> layers;
  for (const auto& at : share().at)
    for (const Bucket& bucket : at.buckets)
      if (range_of(last()).has(bucket.layer)) layers.push_back(bucket.layer);
  std::sort(layers.begin(), layers.end(), std::greater<>());
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  return layers;
}

std::vector<int> ComputeWork::layers_of(int part) const {
  if (!task_.ends) return {};
  if (!layers_.empty()) return {layers_[static_cast<std::size_t>(part)]};
  return completed_layers();
}

// ---- cost ----

std::int64_t ComputeWork::flops_of(const Operation& op) const {
  const Model& model = *job_->model;
  const auto skipped = [&](int layer) {  // the backward of frozen layers before all trained ones
    if (op.kind == OpKind::forward || !model.is_frozen(layer)) return false;
    return !wanted_gradients(model)[static_cast<std::size_t>(layer)];
  };
  std::int64_t flops = 0;
  for (int layer = range_of(op).first; layer < range_of(op).end; ++layer)
    if (!skipped(layer)) flops += model.layer(layer).flops();
  // A backward for inputs costs as much as forward, as do a backward for weights and recompute.
  int passes = op.kind == OpKind::backward ? 2 : 1;
  if (share().recompute && pipeline::gives_input_gradient(op.kind)) ++passes;
  return flops * op.micro_batch->size() * passes;
}

Cost ComputeWork::cost(int part) const {
  if (cancelled_) return {};
  std::int64_t flops = 0, floats = 0;
  for (const Operation& op : task_.operations) {
    flops += flops_of(op);
    if (op.kind == OpKind::forward && is_first(op))
      floats += floats_before(*job_->model, 0, op.micro_batch->size());
  }
  const std::int64_t read = part == 0 ? floats * static_cast<std::int64_t>(sizeof(float)) : 0;
  std::int64_t apart = push_encoding_bytes(part) + finishing_bytes();
  if (part == 0 && task_.opens) apart += pull_decoding_bytes();
  for (const Operation& op : task_.operations) {
    if (part == 0) apart += stage_codec_bytes(op, Way::decode);
    if (part + 1 == parts()) apart += stage_codec_bytes(op, Way::encode);
  }
  return {.flops = flops / parts(), .bytes = read, .bytes_apart = apart};
}

std::int64_t ComputeWork::finishing_bytes() const {
  if (!task_.ends || !job_->pushes_at_end()) return 0;
  std::int64_t floats = 0;
  for (const int layer : completed_layers())
    share().for_each_block(layer, [&](BlockId id) { floats += job_->layout->block(id).floats; });
  // A division reads and writes, and squares are read.
  const int passes = (job_->scales_losses ? 2 : 0) + (job_->stages->grouped() ? 0 : 1);
  return floats * passes * static_cast<std::int64_t>(sizeof(float));
}

double ComputeWork::share_done(int part) const {
  if (job_->plan.simulated) return IterationWork::share_done(part);  // as cost() divides it
  std::int64_t before = 0;  // of the operations that belong to the first part
  for (const Operation& op : task_.operations) before += flops_of(op);
  const auto all = static_cast<double>(before);
  const auto of_last = static_cast<double>(flops_of(last()));
  return all > 0 ? 1 - of_last / all * (parts() - part - 1) / parts() : 1;
}

std::int64_t ComputeWork::pull_decoding_bytes() const {
  if (!job_->pull_codec) return 0;
  std::int64_t bytes = 0;
  for (const auto& at : job_->stages->share_of(worker_).at)
    for (const BlockId id : at.blocks) {
      const Block& block = job_->layout->block(id);
      const Codec* const codec = job_->pull_codec_of(block);
      if (codec) bytes += block.floats * codec->decoding_traffic();
    }
  return bytes;
}

bool ComputeWork::is_beside_stage(const Operation& op, int offset) const {
  const auto& placement = job_->stages->placement();
  const int stage = static_cast<int>(job_->stages->stage_of(worker_));
  const int other = placement.model_chunk(stage, op.chunk) + offset;
  const bool exists = offset < 0 ? !is_first(op) : !is_last(op);
  return exists && placement.stage_of(other) != stage;
}

std::int64_t ComputeWork::stage_codec_bytes(const Operation& op, Way way) const {
  const bool forward = op.kind == OpKind::forward;
  const auto& codec = forward ? job_->activation_codec : job_->activation_gradient_codec;
  if (!codec || (!forward && !pipeline::gives_input_gradient(op.kind))) return 0;
  // A forward decodes the tensor before its chunk, and a backward the one behind it.
  const bool before = forward == (way == Way::decode);
  if (!is_beside_stage(op, before ? -1 : 1)) return 0;
  const int layer = before ? range_of(op).first : range_of(op).end;
  return floats_before(*job_->model, layer, op.micro_batch->size()) *
         (way == Way::decode ? codec->decoding_traffic() : codec->encoding_traffic());
}

std::int64_t ComputeWork::push_encoding_bytes(int part) const {
  if (!job_->push_codecs) return 0;
  std::int64_t bytes = 0;
  for (const int layer : layers_of(part))
    job_->stages->share_of(worker_).for_each_block(layer, [&](BlockId id) {
      const Block& block = job_->layout->block(id);
      const Codec* const codec = job_->push_codec_of(block, last().micro_batch->pulled);
      if (codec) bytes += block.floats * codec->pushing_traffic();
    });
  return bytes;
}

// ---- computing ----

void ComputeWork::run(int part) {
  if (cancelled_) return abandon(part);
  if (job_->cost_only) return pretend(part);
  try {
    compute(part);
  } catch (...) {
    engine_->on_->drain();  // the device can still use the blobs that unwinding returns
    throw;
  }
}

void ComputeWork::abandon(int part) {
  const Operation& op = last();
  if (part + 1 < parts() || !op.micro_batch->stash) return;  // without a forward, there are none
  engine_->chunk(op.chunk).pass.release(*op.micro_batch->stash);
  engine_->on_->wait_mark();  // a GPU can still read the gathered samples
  op.micro_batch->gathered.reset();
}

void ComputeWork::pretend(int part) {
  if (task_.releases)
    for (const int layer : layers_of(part)) release_weights(layer);
  if (part + 1 < parts()) return;
  const Operation& op = last();
  const bool forward = op.kind == OpKind::forward;
  const bool sends =
      forward ? !is_last(op) : pipeline::gives_input_gradient(op.kind) && !is_first(op);
  const int end = forward ? range_of(op).end : range_of(op).first;
  if (sends) output_ = job_->zeros(floats_before(*job_->model, end, op.micro_batch->size()));
}

void ComputeWork::compute(int part) {
  for (Operation& op : task_.operations) {
    const bool is_last_operation = &op == &task_.operations.back();
    if (!diverged_layer_.empty()) return;
    if (!is_last_operation && part > 0) continue;
    if (part == 0) op.micro_batch->held = 0;
    op.micro_batch->weights->bind(engine_->on_);
    if (op.kind == OpKind::forward)
      forward(op);
    else
      backward(op, is_last_operation ? part : 0, is_last_operation ? parts() : 1);
  }
}

void ComputeWork::forward(Operation& op) {
  MicroBatch& of = *op.micro_batch;
  ChunkPass& pass = engine_->chunk(op.chunk).pass;
  of.stash = &pass.take_stash();
  ChunkInput input;
  Profile::Timer timer(job_->profile.get(), *engine_->on_);
  of.gathered = std::make_unique<GatheredBatch>(engine_->on_, of.size());
  if (is_first(op) && is_last(op))
    input.batch = of.gathered->gather(*job_, of.epoch, of.samples);
  else if (is_last(op))
    input.batch = of.gathered->gather_labels(*job_, of.epoch, of.samples);
  else
    input.batch = of.gathered->gather_keys(*job_, of.epoch, of.samples);
  if (is_first(op)) {
    if (!is_last(op))
      op.input = gather_samples(*job_, *engine_->on_, of.samples, input.batch.sample_keys);
    timer.end("data", "gather", 0,
              static_cast<double>(2 * floats_before(*job_->model, 0, of.size()) * 4));
  }
  input.batch.loss_scale = of.loss_scale;
  input.input = std::move(op.input);
  output_ = pass.start_forward(*of.stash, input, of.weights->views(), of.weights->keys());
  note_held(of);
}

void ComputeWork::backward(Operation& op, int part, int parts) {
  MicroBatch& of = *op.micro_batch;
  auto& [pass, sum] = engine_->chunk(op.chunk);
  const auto weights = of.weights->views();
  const BackwardFor purpose = purpose_of(op.kind);
  if (part == 0) {
    if (task_.begins && !std::exchange(summing_, true))
      sum.start(task_.samples, task_.micro_batches);
    const std::size_t read = op.input.size();
    pass.start_backward(*of.stash, purpose, std::move(op.input), weights);
    note_held(of, read);  // before gradients are handed over, and weights released
  }
  const bool is_last_part = part + 1 == parts;
  const int from =
      part == 0 ? range_of(op).end - 1 : layers_[static_cast<std::size_t>(part) - 1] - 1;
  const int to = is_last_part ? range_of(op).first : layers_[static_cast<std::size_t>(part)];
  for (int layer = from; layer >= to; --layer) {
    pass.backward_layer(*of.stash, layer, weights, sum.views());
    if (pass.writes_gradients(layer, purpose)) sum.add(layer, of.size());
  }
  // After the layers, so that a GPU computes while the processor waits for the loss.
  if (part == 0 && is_last(op) && purpose != BackwardFor::weights) read_loss(op);
  if (!diverged_layer_.empty()) return;
  if (&op == &task_.operations.back())
    for (const int layer : layers_of(part)) {
      hand_over_gradients(layer);
      if (task_.releases) release_weights(layer);
    }
  if (task_.ends && &op == &task_.operations.back() && job_->pushes_at_end()) finish_gradients();
  if (!is_last_part) return;
  output_ = pass.finish_backward(*of.stash);
  if (purpose == BackwardFor::inputs) return note_held(of);
  pass.release(*of.stash);
  engine_->on_->wait_mark();  // a GPU can still read the gathered samples
  of.gathered.reset();
}

void ComputeWork::read_loss(const Operation& op) {
  MicroBatch& of = *op.micro_batch;
  ChunkPass& pass = engine_->chunk(op.chunk).pass;
  const PassResult result = pass.result(*of.stash);
  result_.loss +=
      result.loss * (static_cast<double>(of.size()) / static_cast<double>(loss_samples_));
  result_.correct += result.correct;
  if (std::isfinite(result.loss)) return;
  result_.loss = result.loss;
  const Model& model = *job_->model;
  const int layer = pass.first_non_finite_layer(*of.stash, of.weights->views());
  diverged_layer_ = layer < model.layers() ? model.layer_name(layer) : "the loss";
}

void ComputeWork::hand_over_gradients(int layer) {
  share().for_each_block(layer, [&](BlockId block) {
    Blob& gradient = gradients_[block.value()];
    gradient = engine_->chunk(last().chunk).sum.take(block);
    // Tied weights in two chunks of this stage: the other chunk has added all of its gradients.
    for (std::size_t i = 0; i < share().chunks.size(); ++i)
      if (const Blob other = engine_->chunk(static_cast<int>(i)).sum.take(block)) {
        engine_->on_->accumulate(gradient.mutable_floats(), other.as_floats(), 1,
                                 job_->layout->block(block).floats, kernels::Write::add);
        engine_->on_->end_read(other);
      }
    engine_->on_->end_write(gradient);
  });
}

void ComputeWork::release_weights(int layer) {
  share().for_each_block(layer,
                         [&](BlockId block) { last().micro_batch->weights->release(block); });
}

void ComputeWork::finish_gradients() {
  Executor& on = *engine_->on_;
  const float scale = last().micro_batch->loss_scale;
  for (const Block& block : job_->layout->blocks()) {
    Blob& gradient = gradients_[block.id.value()];
    if (!gradient || block.average > 0) continue;  // statistics have no loss
    float* const values = gradient.mutable_floats();
    if (scale != 1) {
      on.accumulate(values, values, 1 / scale, block.floats, kernels::Write::assign);
      on.end_write(gradient);
    }
    if (!job_->stages->grouped())  // otherwise those of the sum count
      squares_ += on.sum_of_squares(values, block.floats);
  }
}

Blob ComputeWork::take_gradient(BlockId block) {
  if (job_->cost_only) return job_->no_gradients[block.value()];
  return std::move(gradients_[block.value()]);
}

void ComputeWork::note_held(MicroBatch& micro_batch, std::size_t excluded) {
  const std::int64_t held =
      micro_batch.bytes() + micro_batch.weights->bytes() + engine_->gradient_bytes();
  micro_batch.held = std::max(micro_batch.held, held - static_cast<std::int64_t>(excluded));
}

ComputeWork::Task task_of(const Job& job, const LeasedIteration& leased,
                          std::shared_ptr<DeviceWeights> weights, Iteration pulled,
                          float loss_scale) {
  const std::int64_t count = micro_batches_of(job.plan, leased.samples());
  ComputeWork::Task task{.operations = {},
                         .samples = leased.samples(),
                         .micro_batches = count,
                         .opens = true,
                         .begins = true,
                         .ends = true,
                         .releases = true};
  for (std::int64_t i = 0; i < count; ++i) {
    const auto micro_batch = make_micro_batch(job, leased, i, count, weights, pulled);
    if (loss_scale > 0) micro_batch->loss_scale = loss_scale;
    task.operations.push_back({OpKind::forward, 0, micro_batch, {}});
    task.operations.push_back({OpKind::backward, 0, micro_batch, {}});
  }
  return task;
}

}  // namespace leeway
