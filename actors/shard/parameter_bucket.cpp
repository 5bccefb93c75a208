#include "actors/shard/parameter_bucket.hpp"

#include <algorithm>

#include "actors/shard/measure_work.hpp"
#include "actors/shard/update_work.hpp"
#include "checkpoint/store.hpp"
#include "core/check.hpp"
#include "core/mutant.hpp"

namespace leeway {
namespace {

/// The block's rows of its parameters. `whole_of` returns all values of a parameter.
template <class WholeOf>
Blob rows_of(const Block& block, WholeOf whole_of) {
  Blob rows = Blob::floats(block.floats);
  float* const out = rows.mutable_floats();
  std::int64_t end = 0;
  for (const auto& slice : block.slices) {
    const checkpoint::Values whole = whole_of(static_cast<std::size_t>(slice.parameter));
    std::fill(out + end, out + slice.offset, 0.0f);  // the padding
    std::copy_n(whole.as_floats() + slice.first, slice.floats, out + slice.offset);
    end = slice.offset + slice.floats;
  }
  std::fill(out + end, out + block.floats, 0.0f);
  return rows;
}

void begin_state(const Job& job, Executor& on, int slots, BlockState& state) {
  state.weights = on.fetch(rows_of(*state.block, [&](std::size_t parameter) {
    const std::int64_t count = job.model->parameters()[parameter].spec.shape.count();
    const auto whole = std::make_shared<Blob>(Blob::floats(count));
    float* const floats = whole->mutable_floats();
    job.initial_values(static_cast<int>(parameter), floats);
    return checkpoint::Values{{floats, static_cast<std::size_t>(count)}, whole};
  }));
  for (int slot = 0; slot < slots; ++slot)
    state.slots.push_back(slot_of(
        job, state, slot, on.filled(state.block->floats, job.optimizer->initial_state(slot))));
}

/// Continues from the checkpoint. If the rows of the block were in several blocks, its version and
/// progress are the largest of theirs.
void resume_state(const Job& job, Executor& on, int slots, BlockState& state) {
  const auto& parameters = job.resumed->parameters;
  state.weights = on.fetch(
      rows_of(*state.block, [&](std::size_t parameter) { return parameters[parameter].weights; }));
  for (int slot = 0; slot < slots; ++slot)
    state.slots.push_back(
        slot_of(job, state, slot,
                planted(Mutant::slots_restart)
                    ? on.filled(state.block->floats, 0)
                    : on.fetch(rows_of(*state.block, [&](std::size_t parameter) {
                        return parameters[parameter].slots[static_cast<std::size_t>(slot)];
                      }))));
  for (const auto& slice : state.block->slices)
    for (const auto& rows : parameters[static_cast<std::size_t>(slice.parameter)].rows) {
      if (rows.first >= slice.first_row + slice.rows || slice.first_row >= rows.first + rows.count)
        continue;
      if (!planted(Mutant::versions_restart)) state.version = std::max(state.version, rows.version);
      state.progress = std::max(state.progress, rows.progress);
      if (!planted(Mutant::progress_restarts))
        state.samples = std::max(state.samples, rows.samples);
    }
}

std::vector<BlockState> first_state(const Job& job, Executor& on, const Bucket& bucket,
                                    FirstState first) {
  std::vector<BlockState> states;
  for (const BlockId id : bucket.blocks) {
    const Block& block = job.layout->block(id);
    BlockState& state = states.emplace_back();
    state.block = &block;
    const int slots = block.average > 0 ? 0 : job.optimizer->slots();
    if (first == FirstState::zeros) {
      state.weights = on.filled(block.floats, 0);
      for (int slot = 0; slot < slots; ++slot)
        state.slots.push_back(slot_of(job, state, slot, state.weights));
    } else if (job.resumed) {
      resume_state(job, on, slots, state);
    } else {
      begin_state(job, on, slots, state);
    }
  }
  return states;
}

}  // namespace

ParameterBucket::ParameterBucket(std::shared_ptr<const Job> job, const Bucket& bucket,
                                 Device device, FirstState first)
    : job_(std::move(job)),
      on_(job_->executor(device)),
      live_(first_state(*job_, *on_, bucket, first)) {
  if (!job_->delay_policy || job_->cost_only) return;
  for (const BlockState& state : live_)
    pulled_.emplace_back(job_->delay_policy->compares_weights() && job_->is_stepped(*state.block));
}

void ParameterBucket::record(const Reader& reader) {
  for (std::size_t i = 0; i < pulled_.size(); ++i)
    pulled_[i].record(reader.worker, reader.iteration, live_[i]);
}

std::uint64_t ParameterBucket::kept_bytes() const {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < pulled_.size(); ++i)
    bytes += pulled_[i].old_versions(live_[i]) *
             static_cast<std::uint64_t>(live_[i].block->floats) * sizeof(float);
  return bytes;
}

std::shared_ptr<Work> ParameterBucket::advance() {
  while (!busy_ && !queue_.empty()) {
    Item item = std::move(queue_.front());
    queue_.pop_front();
    if (auto* update = std::get_if<Update>(&item)) {
      auto* shadow = update->also_shadow && !shadow_.empty() ? &shadow_ : nullptr;
      busy_ = std::make_shared<UpdateWork>(job_, on_, &live_, shadow, &pulled_,
                                           std::move(update->contributions));
      if (update->measured) return std::make_shared<MeasureWork>(busy_);
      return busy_;
    }
    if (auto* capture = std::get_if<Capture>(&item)) {
      if (capture->reader) record(*capture->reader);
      capture->take(live_);
    } else if (const auto* forget = std::get_if<Forget>(&item)) {
      for (PulledVersions& pulled : pulled_) pulled.forget(forget->worker, forget->upto);
    } else if (auto* collect = std::get_if<Collect>(&item)) {
      collect->take(shadow_.empty() ? live_ : shadow_);
      shadow_.clear();
    } else if (std::holds_alternative<Fork>(item)) {
      shadow_ = live_;
    } else {
      shadow_.clear();
    }
  }
  return nullptr;
}

void ParameterBucket::save(std::vector<msg::StoredBlock>& blocks) const {
  for (const BlockState& state : live_) {
    auto& saved = blocks.emplace_back();
    saved.weights = state.describe();
    for (std::size_t slot = 0; slot < state.slots.size(); ++slot)
      saved.slots.push_back({DType::f32, Shape{state.block->floats},
                             slot_floats(*job_, state, static_cast<int>(slot))});
    saved.progress = state.progress;
    saved.samples = state.samples;
    if (!pulled_.empty())
      saved.pulled = pulled_[static_cast<std::size_t>(&state - live_.data())].save(*state.block);
  }
}

void ParameterBucket::restore(const msg::StoredBlock& block) {
  const auto state = std::ranges::find(live_, block.weights.block,
                                       [](const BlockState& one) { return one.block->id; });
  if (state == live_.end()) return;
  const auto fits = [&](const Blob& blob) {
    return blob.size() >= static_cast<std::size_t>(state->block->floats) * sizeof(float);
  };
  LW_CHECK(fits(block.weights.data) && block.slots.size() == state->slots.size(),
           block.weights.block);
  state->weights = on_->fetch(block.weights.data);
  for (std::size_t slot = 0; slot < block.slots.size(); ++slot) {
    LW_CHECK(fits(block.slots[slot].data), slot);
    state->slots[slot] =
        slot_of(*job_, *state, static_cast<int>(slot), on_->fetch(block.slots[slot].data));
  }
  for (const msg::PulledVersion& one : block.pulled)
    LW_CHECK(!one.weights.data || fits(one.weights.data), one.worker);
  if (!pulled_.empty())
    pulled_[static_cast<std::size_t>(state - live_.begin())].restore(block.pulled, *on_);
  state->version = block.weights.version;
  state->progress = block.progress;
  state->samples = block.samples;
}

std::shared_ptr<Work> ParameterBucket::scaled(float scale) {
  LW_CHECK(busy_ != nullptr);
  busy_->set_scale(scale);
  return busy_;
}

AppliedUpdate ParameterBucket::finish() {
  LW_CHECK(busy_ != nullptr);
  AppliedUpdate applied = busy_->release();
  busy_.reset();
  return applied;
}

}  // namespace leeway
