#include "actors/shard/update_work.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "actors/apply_ranges.hpp"
#include "actors/rewrite.hpp"
#include "actors/shard/merge_directions.hpp"
#include "models/gradient_sum.hpp"
#include "plan/local_steps.hpp"
#include "policies/codec/blobs.hpp"

namespace leeway {
namespace {

/// Samples of one round, from the weight of a push, which the scale of a closed round may have
/// changed; 1 without samples.
std::int64_t round_samples(const std::vector<Contribution>& contributions) {
  for (const Contribution& one : contributions)
    if (one.samples > 0) return std::llround(one.samples / one.weight);
  return 1;
}

/// A Rewrite of an array of optimizer state. Packed state is unpacked for the update.
class StateRewrite {
 public:
  StateRewrite(Executor& on, const Job& job, BlockState& state, int slot)
      : job_(job), state_(state), slot_(slot) {
    if (job.shard_settings.eight_bit_state)
      unpacked_ = slot_floats(job, state, slot);
    else
      rewrite_.emplace(on, kept());
  }
  const float* from() const { return rewrite_ ? rewrite_->from() : unpacked_.as_floats(); }
  float* to() { return rewrite_ ? rewrite_->to() : unpacked_.mutable_floats(); }
  void done() {
    if (rewrite_) return rewrite_->done();
    kept() = slot_of(job_, state_, slot_, std::move(unpacked_));
  }

 private:
  Blob& kept() { return state_.slots[static_cast<std::size_t>(slot_)]; }

  const Job& job_;
  BlockState& state_;
  int slot_;
  std::optional<Rewrite> rewrite_;  // of floats
  Blob unpacked_;
};

}  // namespace

UpdateWork::UpdateWork(std::shared_ptr<const Job> job, std::shared_ptr<Executor> on,
                       std::vector<BlockState>* live, std::vector<BlockState>* shadow,
                       std::vector<PulledVersions>* open_pulls,
                       std::vector<Contribution> contributions)
    : job_(std::move(job)),
      on_(std::move(on)),
      live_(live),
      shadow_(shadow),
      open_pulls_(open_pulls),
      contributions_(std::move(contributions)) {
  const std::int64_t round = round_samples(contributions_);
  scale_ = contributions_.front().scale;  // stages of one pipeline have the same scale
  for (std::size_t i = 0; i < contributions_.size(); ++i) {
    const auto& contribution = contributions_[i];
    if (contribution.samples == 0) continue;  // only assigns
    const WorkerId lead = job_->stages->lead_of(contribution.worker);
    if (shares_.empty() || shares_.back().lead != lead) shares_.push_back({lead, i, i, 0});
    Share& share = shares_.back();
    share.end = i + 1;
    share.samples = std::max<std::int64_t>(share.samples, contribution.samples);
    if (contribution.first_owner) counted_ += contribution.samples;
  }
  for (const Share& share : shares_) samples_ += share.samples;
  lags_.assign(contributions_.size(), 0);
  assigned_.resize(live_->size());
  // One of n tied gradients counts as 1/n of an update by a gradient n times as large. So updates
  // that arrive one by one decay the weights and their averages as much as one whole update.
  if (shares_.size() == 1)
    portion_ = static_cast<double>(shares_.front().end - shares_.front().begin) /
               contributions_[shares_.front().begin].owners;
  // Each worker counts equally after local steps: fewer steps have a smaller effect by themselves.
  const std::int64_t done =
      job_->local_optimizer
          ? static_cast<std::int64_t>(shares_.size() * iteration_samples(job_->plan))
          : samples_;
  const bool whole = job_->shard_settings.whole_steps && samples_ > 0;
  weight_ = portion_ * (whole ? 1 : static_cast<double>(done) / static_cast<double>(round));
}

Cost UpdateWork::cost_of(int part, std::int64_t arrays) const {
  const std::int64_t floats = (*live_)[static_cast<std::size_t>(part)].block->floats;
  return {floats * arrays, floats * arrays * 4};
}

Cost UpdateWork::cost(int part) const {
  // measure() has read the contributions.
  const auto inputs = measured_.empty() ? static_cast<std::int64_t>(contributions_.size()) : 1;
  Cost cost = cost_of(part, inputs + job_->optimizer->streams() * (shadow_ ? 2 : 1));
  // Pulls of a version share one encoding. This counts one for each version, also for those that no
  // worker pulls.
  const Block& block = *(*live_)[static_cast<std::size_t>(part)].block;
  if (const Codec* const codec = job_->pull_codec_of(block))
    cost.bytes_apart = block.floats * codec->encoding_traffic();
  return cost;
}

void UpdateWork::run(int part) {
  const auto index = static_cast<std::size_t>(part);
  Profile::Timer timer(job_->profile.get(), *on_);
  for (std::size_t i = 0; i < contributions_.size(); ++i)
    lags_[i] =
        std::max(lags_[i], (*live_)[index].version - contributions_[i].blocks[index].version);
  const Pulled pulled = take_pulled(index);
  if (job_->cost_only || (*live_)[index].block->frozen) {
    count((*live_)[index], weight_);
    if (shadow_) count((*shadow_)[index], weight_);
    return;
  }
  if (measured_.empty()) assigned_[index] = take_assigned(index);
  const auto assigned = std::move(assigned_[index]);
  if (has_gradients(index)) {
    const Blob gradient = measured_.empty() ? mean_gradient(index) : std::move(measured_[index]);
    apply((*live_)[index], gradient.as_floats(), pulled);
    if (shadow_) apply((*shadow_)[index], gradient.as_floats(), pulled);
    on_->end_read(gradient);
    if (pulled.weights) on_->end_read(pulled.weights);
  } else {
    count((*live_)[index], 0);
    if (shadow_) count((*shadow_)[index], 0);
  }
  assign((*live_)[index], assigned);
  if (shadow_) assign((*shadow_)[index], assigned);
  for (const Assignment& one : assigned) on_->end_read(one.from);
  const Cost done = cost(part);
  timer.end("shards", "update", static_cast<double>(done.flops), static_cast<double>(done.bytes));
}

Cost UpdateWork::measuring_cost(int part) const {
  return cost_of(part, static_cast<std::int64_t>(contributions_.size()) + 1);
}

void UpdateWork::measure(int part) {
  measured_.resize(live_->size());
  if (job_->cost_only) return;
  const auto index = static_cast<std::size_t>(part);
  const Block& block = *(*live_)[index].block;
  Profile::Timer timer(job_->profile.get(), *on_);
  assigned_[index] = take_assigned(index);
  if (!has_gradients(index)) return;
  measured_[index] = mean_gradient(index);
  if (block.average == 0)
    squares_ += on_->sum_of_squares(measured_[index].as_floats(), block.floats);
  const Cost done = measuring_cost(part);
  timer.end("shards", "measure", static_cast<double>(done.flops), static_cast<double>(done.bytes));
}

std::vector<UpdateWork::Assignment> UpdateWork::take_assigned(std::size_t index) {
  std::vector<Assignment> assigned;
  const auto& slices = (*live_)[index].block->slices;
  const std::size_t first = first_slice(index);
  for (Contribution& contribution : contributions_) {
    Blob& data = contribution.blocks[index].data;
    Blob from, gradient;
    for (const std::uint32_t number : contribution.assigned) {
      if (number < first || number >= first + slices.size()) continue;
      if (!from) {
        from = on_->fetch(data);
        gradient = on_->allocate(from.size());
        on_->copy(gradient.mutable_data(), from.data(), from.size());
      }
      const BlockSlice& slice = slices[number - first];
      on_->zero(gradient.mutable_floats() + slice.offset,
                static_cast<std::size_t>(slice.floats) * sizeof(float));
      assigned.push_back({slice.offset, slice.floats, from});
    }
    if (gradient) data = std::move(gradient);
  }
  return assigned;
}

bool UpdateWork::has_gradients(std::size_t index) const {
  const auto& slices = (*live_)[index].block->slices;
  const std::size_t first = first_slice(index);
  return std::ranges::any_of(contributions_, [&](const Contribution& one) {
    const auto assigned = std::ranges::count_if(one.assigned, [&](std::uint32_t number) {
      return number >= first && number < first + slices.size();
    });
    return one.samples > 0 && static_cast<std::size_t>(assigned) < slices.size();
  });
}

void UpdateWork::assign(BlockState& state, const std::vector<Assignment>& assigned) const {
  if (assigned.empty()) return;
  if (!state.weights.unique()) {
    on_->begin_read(state.weights);
    Blob copy = on_->allocate(state.weights.size());
    on_->copy(copy.mutable_data(), state.weights.data(), state.weights.size());
    on_->end_read(state.weights);
    state.weights = std::move(copy);
  } else {
    on_->begin_write(state.weights);
  }
  for (const Assignment& one : assigned)
    on_->copy(state.weights.mutable_floats() + one.offset, one.from.as_floats() + one.offset,
              static_cast<std::size_t>(one.count) * sizeof(float));
  on_->end_write(state.weights);
}

std::size_t UpdateWork::first_slice(std::size_t index) const {
  std::size_t first = 0;
  for (std::size_t i = 0; i < index; ++i) first += (*live_)[i].block->slices.size();
  return first;
}

Blob UpdateWork::values_of(const Contribution& contribution, std::size_t index) const {
  const msg::BlockData& block = contribution.blocks[index];
  if (block.codec == CodecId::none) return on_->fetch(block.data);
  Blob values =
      decode_blob(job_->push_codecs->at(contribution.iteration), block.data, block.shape.count());
  zero_padding(*(*live_)[index].block, values.mutable_floats());
  return on_->fetch(values);
}

/// The gradient of one pipeline, on this bucket's executor: the sum over its stages, to the bit as
/// one stage with all layers computes it (see add_gradient).
Blob UpdateWork::sum(const Share& share, std::size_t index) const {
  if (is_one_push(share)) return values_of(contributions_[share.begin], index);
  Blob sum = on_->floats((*live_)[index].block->floats);
  for (std::size_t i = share.begin; i < share.end; ++i)
    add(sum, contributions_[i], static_cast<float>(1 / portion_), i == share.begin, index);
  return sum;
}

/// The mean gradient over all pipelines in their order, or the sum if the optimizer takes that. A
/// worker that accumulates micro-batches uses the same kernel and scales, so a round of N workers
/// equals one worker with N micro-batches, bit for bit. Pseudo-gradients are merged as planned.
Blob UpdateWork::mean_gradient(std::size_t index) const {
  if (shares_.size() == 1) return sum(shares_.front(), index);
  if (job_->plan.local_steps.merge == plan::Merge::radial_directional) {
    std::vector<Direction> directions;
    for (const Share& share : shares_) {
      const auto samples = static_cast<double>(share.samples);
      const auto steps = static_cast<double>(local_steps_of(job_->plan, share.samples));
      directions.push_back({sum(share, index), samples * samples / steps});
    }
    return merge_directions(*on_, *job_->model, *(*live_)[index].block, directions);
  }
  Blob mean = on_->floats((*live_)[index].block->floats);
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    const Share& share = shares_[i];
    const float scale = scale_of(share);
    if (is_one_push(share))
      add(mean, contributions_[share.begin], scale, i == 0, index);
    else
      add(mean, sum(share, index), scale, i == 0, index);
  }
  return mean;
}

void UpdateWork::add(Blob& to, const Contribution& contribution, float scale, bool first,
                     std::size_t index) const {
  const msg::BlockData& block = contribution.blocks[index];
  if (block.codec == CodecId::none || on_->device().kind == Device::Kind::cuda)
    return add(to, values_of(contribution, index), scale, first, index);
  if (first) on_->zero(to.mutable_data(), to.size());
  job_->push_codecs->at(contribution.iteration)
      .accumulate(block.data.bytes(), scale,
                  {to.mutable_floats(), static_cast<std::size_t>((*live_)[index].block->floats)});
  zero_padding(*(*live_)[index].block, to.mutable_floats());
}

/// to = scale * gradient for the first, to += scale * gradient for the others.
void UpdateWork::add(Blob& to, const Blob& gradient, float scale, bool first,
                     std::size_t index) const {
  on_->accumulate(to.mutable_floats(), gradient.as_floats(), scale, (*live_)[index].block->floats,
                  first ? kernels::Write::assign : kernels::Write::add);
  on_->end_read(gradient);
}

double UpdateWork::steps_per_push() const {
  if (!job_->local_optimizer) return 1;
  std::int64_t steps = 0;
  for (const Share& share : shares_) steps += local_steps_of(job_->plan, share.samples);
  return static_cast<double>(steps) / static_cast<double>(shares_.size());
}

float UpdateWork::scale_of(const Share& share) const {
  if (job_->optimizer->sums_rounds()) return 1;
  const bool counts_workers =
      job_->local_optimizer && job_->plan.local_steps.merge == plan::Merge::mean;
  return counts_workers ? 1 / static_cast<float>(shares_.size())
                        : mean_scale(share.samples, samples_);
}

void UpdateWork::count(BlockState& state, double weight) const {
  state.progress += weight;
  state.samples += counted_;
  ++state.version;
}

UpdateWork::Pulled UpdateWork::take_pulled(std::size_t index) {
  if (open_pulls_->empty()) return {};
  const BlockState& state = (*live_)[index];
  PulledVersions& open = (*open_pulls_)[index];
  Pulled oldest;
  for (const Contribution& one : contributions_) {
    const Version version = one.blocks[index].version;
    Pulled pulled;
    if (const auto* found = open.find(one.worker, version))
      pulled = {state.progress - found->progress, found->weights};
    else if (state.version.value() > 0)  // the worker has pulled again since then
      pulled.lag = state.progress * static_cast<double>(state.version - version) /
                   static_cast<double>(state.version.value());
    if (pulled.lag >= oldest.lag) oldest = pulled;
    open.forget(one.worker, one.iteration);
  }
  return oldest;
}

void UpdateWork::apply(BlockState& state, const float* gradient, const Pulled& pulled) const {
  const plan::Optimizer& settings = job_->shard_settings;
  const double rate =  // the outer optimizer of local steps has no lr schedule
      job_->local_optimizer ? settings.learning_rate
                            : job_->learning_rate(static_cast<double>(state.samples));
  count(state, weight_);
  kernels::UpdateBuffers buffers;
  buffers.count = state.block->floats;
  buffers.g = gradient;
  Rewrite weights(*on_, state.weights);
  buffers.w = weights.from();
  buffers.w_out = weights.to();
  buffers.pulled = pulled.weights ? pulled.weights.as_floats() : buffers.w;
  std::vector<StateRewrite> slots;
  slots.reserve(state.slots.size());
  for (std::size_t i = 0; i < state.slots.size(); ++i) {
    auto& slot = slots.emplace_back(*on_, *job_, state, static_cast<int>(i));
    buffers.state[i] = slot.from();
    buffers.state_out[i] = slot.to();
  }
  const double average = state.block->average;
  if (average > 0) {
    // Statistics: n pushes of weight 1/n move the average as far as one of weight 1.
    const auto gain = static_cast<float>(1 - std::pow(1 - average, weight_ * steps_per_push()));
    on_->update(buffers, kernels::AverageFormula{gain});
  } else {
    buffers.clipping.scale = scale_;
    if (settings.clip_value > 0) buffers.clipping.limit = static_cast<float>(settings.clip_value);
    apply_ranges(*on_, *job_->optimizer, *job_->model, job_->update_ranges[state.block->id.value()],
                 buffers,
                 {.weight = weight_,
                  .learning_rate = rate,
                  .progress = state.progress,
                  .lag = pulled.lag,
                  .largest_rate = settings.learning_rate});
  }
  weights.done();
  for (auto& slot : slots) slot.done();
}

}  // namespace leeway
