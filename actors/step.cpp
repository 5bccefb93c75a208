#include "actors/step.hpp"

#include <algorithm>
#include <cmath>

#include "actors/weighting.hpp"
#include "core/check.hpp"
#include "core/rng.hpp"
#include "kernels/accumulate.hpp"

namespace leeway {
namespace {

std::int64_t largest_micro_batch(const Plan& plan) {
  return (plan.batch + plan.micro_batches - 1) / plan.micro_batches;
}

}  // namespace

StepBuffers::StepBuffers(std::shared_ptr<const Job> job)
    : job_(std::move(job)),
      micro_batch_(largest_micro_batch(job_->plan)),
      pass_(job_->model, micro_batch_, true),
      x_(Blob::floats(micro_batch_ * job_->model->input().count())),
      targets_(
          Blob::floats(micro_batch_ * std::max<std::int64_t>(job_->data.train->target_count(), 1))),
      labels_(static_cast<std::size_t>(micro_batch_)),
      keys_(static_cast<std::size_t>(micro_batch_)),
      weight_slices_(*job_->model, *job_->layout,
                     std::vector<const float*>(job_->layout->blocks().size(), nullptr)),
      gradient_slices_(*job_->model, *job_->layout,
                       std::vector<float*>(job_->layout->blocks().size(), nullptr)) {
  if (job_->plan.micro_batches > 1)
    for (const auto& block : job_->layout->blocks()) pieces_.push_back(Blob::floats(block.floats));
}

Step::Step(std::shared_ptr<StepBuffers> buffers, Iteration iteration, StepSamples samples,
           std::vector<Blob> weights)
    : buffers_(std::move(buffers)),
      iteration_(iteration),
      samples_(std::move(samples)),
      weights_(std::move(weights)) {
  const Model& model = *buffers_->job_->model;
  const Layout& layout = *buffers_->job_->layout;
  LW_CHECK(!samples_.samples.empty());
  LW_CHECK(weights_.size() == layout.blocks().size(), weights_.size());
  for (int layer = model.layers() - 1; layer >= 0; --layer)
    if (model.first_parameter(layer) < model.first_parameter(layer + 1)) layers_.push_back(layer);
  one_piece_ = static_cast<std::int64_t>(samples_.samples.size()) <= buffers_->micro_batch_;
  gradients_.resize(layout.blocks().size());
}

Cost Step::cost(int part) const {
  const Job& job = *buffers_->job_;
  const auto samples = static_cast<std::int64_t>(samples_.samples.size());
  const std::int64_t all = 3 * job.model->flops_per_sample() * samples;
  return {all / parts(), part == 0 ? samples * job.model->input().count() * 4 : 0};
}

void Step::run(int part) {
  const auto& job = *buffers_->job_;
  if (part == 0) {
    for (std::size_t block = 0; block < weights_.size(); ++block) {
      const BlockId id(static_cast<std::uint32_t>(block));
      buffers_->weight_slices_.set_block(*job.layout, id, weights_[block].as_floats());
      gradients_[block] = Blob::floats(job.layout->block(id).floats);
      // Padding between slices is never written by a kernel, and must not carry NaN into an update.
      auto& target = one_piece_ ? gradients_[block] : buffers_->pieces_[block];
      zero_padding(*job.model, job.layout->block(id), gradients_[block].mutable_floats());
      if (!one_piece_) zero_padding(*job.model, job.layout->block(id), target.mutable_floats());
      buffers_->gradient_slices_.set_block(*job.layout, id, target.mutable_floats());
    }
    const auto total = static_cast<std::int64_t>(samples_.samples.size());
    std::int64_t done = 0;
    for (; total - done > buffers_->micro_batch_; done += buffers_->micro_batch_) {
      if (!forward(done, buffers_->micro_batch_)) return;
      for (int other = 0; other < parts(); ++other) {
        backward(other);
        add_piece(layer_of(other), buffers_->micro_batch_, done == 0);
      }
    }
    if (!forward(done, total - done)) return;
  }
  if (!diverged_layer_.empty()) return;
  backward(part);
  const auto total = static_cast<std::int64_t>(samples_.samples.size());
  if (!one_piece_) add_piece(layer_of(part), (total - 1) % buffers_->micro_batch_ + 1, false);
  // Nobody reads these weights again: without this reference their next update can run in place.
  for (const auto& block : job.layout->blocks())
    if (block.layer == layer_of(part)) weights_[block.id.value()].reset();
}

bool Step::forward(std::int64_t first, std::int64_t count) {
  const Job& job = *buffers_->job_;
  const Dataset& data = *job.data.train;
  const std::span samples(samples_.samples.data() + first, static_cast<std::size_t>(count));
  data.gather(samples, buffers_->x_.mutable_floats(), buffers_->labels_.data(),
              buffers_->targets_.mutable_floats());
  for (std::size_t i = 0; i < samples.size(); ++i)
    buffers_->keys_[i] =
        mix64(mix64(job.plan.seed ^ mix64(static_cast<std::uint64_t>(samples_.epoch.value()))) ^
              static_cast<std::uint64_t>(samples[i]));
  const Batch batch{count, buffers_->x_.as_floats(),
                    data.classes() > 0 ? buffers_->labels_.data() : nullptr,
                    data.target_count() > 0 ? buffers_->targets_.as_floats() : nullptr,
                    std::span(buffers_->keys_.data(), samples.size())};
  const PassResult result = buffers_->pass_.forward(batch, buffers_->weight_slices_.views());
  const auto total = static_cast<double>(samples_.samples.size());
  loss_ += result.loss * (static_cast<double>(count) / total);
  correct_ += result.correct;
  if (std::isfinite(result.loss)) return true;
  loss_ = result.loss;
  const int layer = buffers_->pass_.first_non_finite_layer();
  diverged_layer_ = layer < job.model->layers() ? job.model->layer_name(layer) : "the loss";
  return false;
}

void Step::backward(int part) {
  const int from = part == 0 ? buffers_->job_->model->layers() - 1 : layer_of(part - 1) - 1;
  for (int layer = from; layer >= layer_of(part); --layer)
    buffers_->pass_.backward(layer, buffers_->weight_slices_.views(),
                             buffers_->gradient_slices_.views());
}

void Step::add_piece(int layer, std::int64_t count, bool first) {
  const auto total = static_cast<std::int64_t>(samples_.samples.size());
  for (const auto& block : buffers_->job_->layout->blocks()) {
    if (block.layer != layer) continue;
    const auto index = block.id.value();
    kernels::accumulate(gradients_[index].mutable_floats(), buffers_->pieces_[index].as_floats(),
                        mean_scale(count, total), block.floats,
                        first ? kernels::Write::assign : kernels::Write::add);
  }
}

}  // namespace leeway
