#include "actors/parameter_group.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "actors/weighting.hpp"
#include "core/check.hpp"
#include "kernels/accumulate.hpp"

namespace leeway {
namespace {

/// Samples of one round, recovered exactly from what a push carries.
std::int64_t round_samples(const Contribution& contribution) {
  return std::llround(contribution.samples / contribution.weight);
}

std::vector<ParameterGroup::BlockState> initial_state(const Job& job, const Part& part) {
  std::vector<ParameterGroup::BlockState> states;
  for (const BlockId id : part.blocks) {
    const Block& block = job.layout->block(id);
    ParameterGroup::BlockState state;
    state.block = &block;
    state.weights = Blob::floats(block.floats);
    std::memset(state.weights.mutable_data(), 0, state.weights.size());
    for (const auto& slice : block.slices) {
      const Shape& shape =
          job.model->parameters()[static_cast<std::size_t>(slice.parameter)].spec.shape;
      std::vector<float> whole(static_cast<std::size_t>(shape.count()));
      job.model->initialize(slice.parameter, job.plan.seed, whole.data());
      std::copy_n(whole.data() + slice.first_row * shape.row_count(),
                  slice.rows * shape.row_count(), state.weights.mutable_floats() + slice.offset);
    }
    for (int slot = 0; slot < job.optimizer->slots(); ++slot) {
      state.slots.push_back(Blob::floats(block.floats));
      std::memset(state.slots.back().mutable_data(), 0, state.slots.back().size());
    }
    states.push_back(std::move(state));
  }
  return states;
}

}  // namespace

/// Applies one update to all blocks of the group, one block a part of the work.
class ParameterGroup::UpdateWork final : public Work {
 public:
  UpdateWork(std::shared_ptr<const Job> job, std::vector<BlockState>* live,
             std::vector<BlockState>* shadow, std::vector<Contribution> contributions)
      : job_(std::move(job)),
        live_(live),
        shadow_(shadow),
        contributions_(std::move(contributions)) {
    const std::int64_t round = round_samples(contributions_.front());
    for (const auto& contribution : contributions_) samples_ += contribution.samples;
    lags_.assign(contributions_.size(), 0);
    weight_ = static_cast<double>(samples_) / static_cast<double>(round);
  }

  int parts() const override { return static_cast<int>(live_->size()); }

  Cost cost(int part) const override {
    const std::int64_t floats = (*live_)[static_cast<std::size_t>(part)].block->floats;
    const auto streams = static_cast<std::int64_t>(contributions_.size()) +
                         job_->optimizer->streams() * (shadow_ ? 2 : 1);
    return {floats * streams, floats * streams * 4};
  }

  void run(int part) override {
    const auto index = static_cast<std::size_t>(part);
    const Blob sum = sum_gradients(index);
    const float* gradient =
        sum ? sum.as_floats() : contributions_.front().blocks[index].data.as_floats();
    for (std::size_t i = 0; i < contributions_.size(); ++i)
      lags_[i] =
          std::max(lags_[i], (*live_)[index].version - contributions_[i].blocks[index].version);
    apply((*live_)[index], gradient);
    if (shadow_) apply((*shadow_)[index], gradient);
  }

  Applied release() { return {std::move(contributions_), std::move(lags_)}; }

 private:
  /// The mean gradient over all contributions in their order; null when there is one, which is it.
  /// The same kernel and scales as a worker that accumulates micro-batches: so a round of N workers
  /// equals one worker with N micro-batches, bit for bit.
  Blob sum_gradients(std::size_t index) const {
    if (contributions_.size() == 1) return {};
    const std::int64_t floats = (*live_)[index].block->floats;
    Blob sum = Blob::floats(floats);
    auto write = kernels::Write::assign;
    for (const auto& contribution : contributions_) {
      kernels::accumulate(sum.mutable_floats(), contribution.blocks[index].data.as_floats(),
                          mean_scale(contribution.samples, samples_), floats, write);
      write = kernels::Write::add;
    }
    return sum;
  }

  void apply(BlockState& state, const float* gradient) const {
    const double epochs =
        static_cast<double>(state.samples) / static_cast<double>(job_->data.train->size());
    state.progress += weight_;
    state.samples += samples_;
    ++state.version;
    UpdateArgs args;
    args.count = state.block->floats;
    args.w = state.weights.as_floats();
    args.g = gradient;
    args.weight = weight_;
    args.learning_rate =
        job_->plan.optimizer.learning_rate * job_->schedule->factor(epochs, job_->plan.stop.epochs);
    args.progress = state.progress;
    // Copy on write: whoever holds a buffer keeps it as it is.
    Blob weights = writable(state.weights);
    args.w_out = weights.mutable_floats();
    std::vector<Blob> slots;
    std::vector<const float*> slots_in;
    std::vector<float*> slots_out;
    for (auto& slot : state.slots) {
      slots_in.push_back(slot.as_floats());
      slots.push_back(writable(slot));
      slots_out.push_back(slots.back().mutable_floats());
    }
    args.state = slots_in;
    args.state_out = slots_out;
    job_->optimizer->update(args);
    state.weights = std::move(weights);
    state.slots = std::move(slots);
  }

  static Blob writable(const Blob& blob) {
    return blob.unique() ? blob : Blob::allocate(blob.size());
  }

  std::shared_ptr<const Job> job_;
  std::vector<BlockState>* live_;
  std::vector<BlockState>* shadow_;
  std::vector<Contribution> contributions_;
  std::vector<std::int64_t> lags_;
  std::int64_t samples_ = 0;
  double weight_ = 0;
};

ParameterGroup::ParameterGroup(std::shared_ptr<const Job> job, const Part& part)
    : job_(std::move(job)), part_(part), live_(initial_state(*job_, part)) {}

std::shared_ptr<Work> ParameterGroup::advance() {
  while (!busy_ && !queue_.empty()) {
    Item item = std::move(queue_.front());
    queue_.pop_front();
    if (auto* update = std::get_if<Update>(&item)) {
      auto* shadow = update->also_shadow && !shadow_.empty() ? &shadow_ : nullptr;
      busy_ = std::make_shared<UpdateWork>(job_, &live_, shadow, std::move(update->contributions));
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

ParameterGroup::Applied ParameterGroup::finish() {
  LW_CHECK(busy_ != nullptr);
  Applied applied = busy_->release();
  busy_.reset();
  return applied;
}

}  // namespace leeway
