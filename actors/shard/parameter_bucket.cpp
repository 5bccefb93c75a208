#include "actors/shard/parameter_bucket.hpp"

#include <algorithm>
#include <cstring>

#include "actors/shard/update_work.hpp"
#include "checkpoint/store.hpp"
#include "core/check.hpp"

namespace leeway {
namespace {

/// Zeros on the executor's device that any executor can read.
Blob zeros(Executor& on, std::int64_t floats) {
  Blob blob = on.floats(floats);
  on.zero(blob.mutable_data(), blob.size());
  on.end_write(blob);
  return blob;
}

Blob initial_weights(const Job& job, const Block& block) {
  Blob weights = Blob::floats(block.floats);
  std::memset(weights.mutable_data(), 0, weights.size());
  for (const auto& slice : block.slices) {
    const Shape& shape =
        job.model->parameters()[static_cast<std::size_t>(slice.parameter)].spec.shape;
    std::vector<float> whole(static_cast<std::size_t>(shape.count()));
    job.initial_values(slice.parameter, whole.data());
    std::copy_n(whole.data() + slice.first_row * shape.row_count(), slice.rows * shape.row_count(),
                weights.mutable_floats() + slice.offset);
  }
  return weights;
}

/// Copies the block's rows of all its parameters from whole arrays. `of` selects the array of a
/// parameter.
template <class Of>
Blob rows_of(const Job& job, const Block& block, Of of) {
  Blob rows = Blob::floats(block.floats);
  std::memset(rows.mutable_data(), 0, rows.size());
  for (const auto& slice : block.slices) {
    const auto index = static_cast<std::size_t>(slice.parameter);
    const std::int64_t row = job.model->parameters()[index].spec.shape.row_count();
    const Blob& whole = of(job.resumed->parameters[index]);
    std::copy_n(whole.as_floats() + slice.first_row * row, slice.rows * row,
                rows.mutable_floats() + slice.offset);
  }
  return rows;
}

/// The state of a block in the checkpoint. If its rows were in several blocks, the version and the
/// progress are the largest.
BlockState resumed_state(const Job& job, Executor& on, const Block& block) {
  BlockState state{.block = &block};
  state.weights =
      on.fetch(rows_of(job, block, [](const checkpoint::ParameterState& from) -> const Blob& {
        return from.weights;
      }));
  const int slots = block.average > 0 ? 0 : job.optimizer->slots();
  for (int slot = 0; slot < slots; ++slot)
    state.slots.push_back(
        on.fetch(rows_of(job, block, [&](const checkpoint::ParameterState& from) -> const Blob& {
          return from.slots[static_cast<std::size_t>(slot)];
        })));
  for (const auto& slice : block.slices)
    for (const auto& rows :
         job.resumed->parameters[static_cast<std::size_t>(slice.parameter)].rows) {
      if (rows.first >= slice.first_row + slice.rows || slice.first_row >= rows.first + rows.count)
        continue;
      state.version = std::max(state.version, rows.version);
      state.progress = std::max(state.progress, rows.progress);
      state.samples = std::max(state.samples, rows.samples);
    }
  return state;
}

std::vector<BlockState> initial_state(const Job& job, Executor& on, const Bucket& bucket) {
  std::vector<BlockState> states;
  for (const BlockId id : bucket.blocks) {
    const Block& block = job.layout->block(id);
    if (job.resumed) {
      states.push_back(resumed_state(job, on, block));
      continue;
    }
    BlockState state;
    state.block = &block;
    state.weights = on.fetch(initial_weights(job, block));
    const int slots = block.average > 0 ? 0 : job.optimizer->slots();
    for (int slot = 0; slot < slots; ++slot) state.slots.push_back(zeros(on, block.floats));
    states.push_back(std::move(state));
  }
  return states;
}

}  // namespace

ParameterBucket::ParameterBucket(std::shared_ptr<const Job> job, const Bucket& bucket,
                                 Device device)
    : job_(std::move(job)),
      on_(job_->executor(device)),
      live_(initial_state(*job_, *on_, bucket)) {}

std::shared_ptr<Work> ParameterBucket::advance() {
  while (!busy_ && !queue_.empty()) {
    Item item = std::move(queue_.front());
    queue_.pop_front();
    if (auto* update = std::get_if<Update>(&item)) {
      auto* shadow = update->also_shadow && !shadow_.empty() ? &shadow_ : nullptr;
      busy_ =
          std::make_shared<UpdateWork>(job_, on_, &live_, shadow, std::move(update->contributions));
      return busy_;
    }
    if (auto* capture = std::get_if<Capture>(&item)) {
      capture->take(live_);
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

AppliedUpdate ParameterBucket::finish() {
  LW_CHECK(busy_ != nullptr);
  AppliedUpdate applied = busy_->release();
  busy_.reset();
  return applied;
}

}  // namespace leeway
