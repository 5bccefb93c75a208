#include "actors/shard/parameter_bucket.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/check.hpp"
#include "models/gradient_sum.hpp"

namespace leeway {
namespace {

/// Samples of one round, recovered exactly from what a push carries.
std::int64_t round_samples(const Contribution& contribution) {
  return std::llround(contribution.samples / contribution.weight);
}

/// `floats` zeros on the executor's device, ready to be read by anybody.
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

std::vector<ParameterBucket::BlockState> initial_state(const Job& job, Executor& on,
                                                       const Bucket& part) {
  std::vector<ParameterBucket::BlockState> states;
  for (const BlockId id : part.blocks) {
    const Block& block = job.layout->block(id);
    ParameterBucket::BlockState state;
    state.block = &block;
    state.weights = on.fetch(initial_weights(job, block));
    const int slots = block.average > 0 ? 0 : job.optimizer->slots();
    for (int slot = 0; slot < slots; ++slot) state.slots.push_back(zeros(on, block.floats));
    states.push_back(std::move(state));
  }
  return states;
}

}  // namespace

/// Applies one update to all blocks of the group, one block a part of the work.
class ParameterBucket::UpdateWork final : public Work {
 public:
  UpdateWork(std::shared_ptr<const Job> job, std::shared_ptr<Executor> on,
             std::vector<BlockState>* live, std::vector<BlockState>* shadow,
             std::vector<Contribution> contributions)
      : job_(std::move(job)),
        on_(std::move(on)),
        live_(live),
        shadow_(shadow),
        contributions_(std::move(contributions)) {
    const std::int64_t round = round_samples(contributions_.front());
    for (std::size_t i = 0; i < contributions_.size(); ++i) {
      const auto& contribution = contributions_[i];
      const WorkerId lead = job_->stages->lead_of(contribution.worker);
      if (shares_.empty() || shares_.back().lead != lead) shares_.push_back({lead, i, i, 0});
      Share& share = shares_.back();
      share.end = i + 1;
      share.samples = std::max<std::int64_t>(share.samples, contribution.samples);
      if (contribution.first_owner) counted_ += contribution.samples;
    }
    for (const Share& share : shares_) samples_ += share.samples;
    lags_.assign(contributions_.size(), 0);
    // Half a gradient counts as half an update, of a gradient that is twice as large: so two halves
    // that come one by one decay the weights and their averages as one whole.
    const auto here = static_cast<double>(shares_.front().end - shares_.front().begin);
    if (shares_.size() == 1) portion_ = here / contributions_.front().owners;
    weight_ = portion_ * static_cast<double>(samples_) / static_cast<double>(round);
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
    Profile::Timer timer(job_->profile.get(), *on_);
    for (std::size_t i = 0; i < contributions_.size(); ++i)
      lags_[i] =
          std::max(lags_[i], (*live_)[index].version - contributions_[i].blocks[index].version);
    if (job_->cost_only) {
      count((*live_)[index]);
      if (shadow_) count((*shadow_)[index]);
      return;
    }
    const Blob gradient = mean_gradient(index);
    apply((*live_)[index], gradient.as_floats());
    if (shadow_) apply((*shadow_)[index], gradient.as_floats());
    on_->end_read(gradient);
    const Cost done = cost(part);
    timer.end("shards", "update", static_cast<double>(done.flops), static_cast<double>(done.bytes));
  }

  Applied release() { return {std::move(contributions_), std::move(lags_)}; }

 private:
  /// What the stages of one pipeline contribute: the same samples, each through its own layers.
  struct Share {
    WorkerId lead;
    std::size_t begin, end;  // of contributions_
    std::int64_t samples;
  };

  /// The gradient of one pipeline, where this group's executor reads it: the sum of its stages', to
  /// the bits that one stage gets that has all of them (see add_gradient).
  Blob sum(const Share& share, std::size_t index) const {
    if (share.end - share.begin == 1 && portion_ == 1)
      return on_->fetch(contributions_[share.begin].blocks[index].data);
    Blob sum = on_->floats((*live_)[index].block->floats);
    for (std::size_t i = share.begin; i < share.end; ++i)
      add(sum, on_->fetch(contributions_[i].blocks[index].data), static_cast<float>(1 / portion_),
          i == share.begin, index);
    return sum;
  }

  /// The mean gradient over all pipelines in their order. The same kernel and scales as a worker
  /// that accumulates micro-batches: so a round of N workers equals one worker with N
  /// micro-batches, bit for bit.
  Blob mean_gradient(std::size_t index) const {
    if (shares_.size() == 1) return sum(shares_.front(), index);
    Blob mean = on_->floats((*live_)[index].block->floats);
    for (std::size_t i = 0; i < shares_.size(); ++i)
      add(mean, sum(shares_[i], index), mean_scale(shares_[i].samples, samples_), i == 0, index);
    return mean;
  }

  /// to = scale * gradient for the first, then +=.
  void add(Blob& to, const Blob& gradient, float scale, bool first, std::size_t index) const {
    on_->accumulate(to.mutable_floats(), gradient.as_floats(), scale, (*live_)[index].block->floats,
                    first ? kernels::Write::assign : kernels::Write::add);
    on_->end_read(gradient);
  }

  void count(BlockState& state) const {
    state.progress += weight_;
    state.samples += counted_;
    ++state.version;
  }

  void apply(BlockState& state, const float* gradient) const {
    const double epochs =
        static_cast<double>(state.samples) / static_cast<double>(job_->data.train->size());
    count(state);
    kernels::UpdateBuffers buffers;
    buffers.count = state.block->floats;
    buffers.g = gradient;
    // Copy on write: whoever holds a buffer keeps it as it is.
    Rewrite weights(*on_, state.weights);
    buffers.w = weights.from();
    buffers.w_out = weights.to();
    std::vector<Rewrite> slots;
    slots.reserve(state.slots.size());
    for (auto& blob : state.slots) {
      auto& slot = slots.emplace_back(*on_, blob);
      buffers.state[slots.size() - 1] = slot.from();
      buffers.state_out[slots.size() - 1] = slot.to();
    }
    const double average = state.block->average;
    if (average > 0) {
      // Statistics: n pushes of weight 1/n move the average as far as one of weight 1.
      const auto gain = static_cast<float>(1 - std::pow(1 - average, weight_));
      on_->update(buffers, kernels::AverageFormula{gain});
    } else {
      const double rate = job_->plan.optimizer.learning_rate *
                          job_->schedule->factor(epochs, job_->plan.stop.epochs);
      job_->optimizer->update(*on_, buffers, {weight_, rate, state.progress});
    }
    weights.done();
    for (auto& slot : slots) slot.done();
  }

  /// A blob on its way to its next contents: in place if nobody else holds it, else in a new one.
  class Rewrite {
   public:
    Rewrite(Executor& on, Blob& blob) : on_(on), blob_(blob), in_place_(blob.unique()) {
      if (in_place_) {
        on_.begin_write(blob_);
      } else {
        on_.begin_read(blob_);
        fresh_ = on_.allocate(blob_.size());
      }
    }
    const float* from() const { return blob_.as_floats(); }
    float* to() { return in_place_ ? blob_.mutable_floats() : fresh_.mutable_floats(); }
    /// The work that writes it has been asked for.
    void done() {
      if (!in_place_) {
        on_.end_read(blob_);
        blob_ = std::move(fresh_);
      }
      on_.end_write(blob_);
    }

   private:
    Executor& on_;
    Blob& blob_;
    Blob fresh_;
    bool in_place_;
  };

  std::shared_ptr<const Job> job_;
  std::shared_ptr<Executor> on_;
  std::vector<BlockState>* live_;
  std::vector<BlockState>* shadow_;
  std::vector<Contribution> contributions_;
  std::vector<Share> shares_;
  std::vector<std::int64_t> lags_;
  std::int64_t samples_ = 0;  // of all pipelines
  std::int64_t counted_ = 0;  // of those, what counts as trained on
  double portion_ = 1;        // of its gradient that a lone pipeline has here
  double weight_ = 0;
};

ParameterBucket::ParameterBucket(std::shared_ptr<const Job> job, const Bucket& part, Device device)
    : job_(std::move(job)),
      on_(job_->executor(device)),
      part_(part),
      live_(initial_state(*job_, *on_, part)) {}

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

ParameterBucket::Applied ParameterBucket::finish() {
  LW_CHECK(busy_ != nullptr);
  Applied applied = busy_->release();
  busy_.reset();
  return applied;
}

}  // namespace leeway
