#include "actors/shard/parameter_bucket.hpp"

#include <algorithm>
#include <cstring>

#include "actors/shard/update_work.hpp"
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

std::vector<BlockState> initial_state(const Job& job, Executor& on, const Bucket& bucket) {
  std::vector<BlockState> states;
  for (const BlockId id : bucket.blocks) {
    const Block& block = job.layout->block(id);
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
