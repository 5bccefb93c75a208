#pragma once
// ShardScene: one shard that gets its messages from a test, observed by the simulator's checkers.
//
// The shard computes its work at once, unless work is paused. Workers keep the versions that they
// have pulled. A gradient is a random function of the worker, the iteration and the block.
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/shard/shard.hpp"
#include "models/gradient_sum.hpp"
#include "sim/checkers/catalogue.hpp"
#include "sim/checkers/pipelines.hpp"
#include "sim/checkers/samples.hpp"
#include "sim/observers.hpp"

namespace leeway::test {

/// A block's gradient, with zeros as padding.
inline Blob gradient_of(const Job& job, BlockId id, WorkerId worker, std::int64_t iteration) {
  const Block& block = job.layout->block(id);
  Rng rng(mix64(id.value() + 1000 * worker.value() +
                1'000'000 * static_cast<std::uint64_t>(iteration)));
  Blob gradient = Blob::floats(block.floats);
  std::fill_n(gradient.mutable_floats(), block.floats, 0.0f);
  for (const auto& slice : block.slices)
    for (std::int64_t i = 0; i < slice.floats; ++i)
      gradient.mutable_floats()[slice.offset + i] = static_cast<float>(rng.uniform() - 0.5);
  return gradient;
}

/// The gradient of a single stage with all layers: `first` plus `second` (see add_gradient).
inline Blob with_added(const Job& job, BlockId id, const Blob& first, const Blob& second) {
  const auto cpu = make_cpu_executor();
  Blob sum = Blob::floats(job.layout->block(id).floats);
  std::copy_n(first.as_floats(), job.layout->block(id).floats, sum.mutable_floats());
  for (const auto& slice : job.layout->block(id).slices) {
    const RowSlice<float> to{slice.first_row, slice.rows, sum.mutable_floats() + slice.offset};
    const RowSlice<float> from{slice.first_row, slice.rows,
                               const_cast<float*>(second.as_floats()) + slice.offset};
    add_gradient(*cpu, {&to, 1}, {&from, 1},
                 job.model->parameters()[static_cast<std::size_t>(slice.parameter)].spec.shape);
  }
  return sum;
}

class ShardScene final : private Outbox {
 public:
  explicit ShardScene(std::shared_ptr<const Job> job, std::uint32_t shard = 0)
      : job_(std::move(job)), id_(shard), shard_(job_, id_), observers_(watchers(job_)) {}

  const Job& job() const { return *job_; }
  const Shard& shard() const { return shard_; }
  const StageShare::AtShard& share_of(WorkerId worker) const {
    return job_->stages->share_of(worker).at[id_.value()];
  }

  void tell(Address from, Body body, Session session = Session(1)) {
    const sim::Letter letter(from, address_of(id_),
                             encode({.session = session, .body = std::move(body)}));
    now_ = now_ + microseconds(1);
    observers_.sent(now_, letter);
    observers_.delivered(now_, letter);
    shard_.on_message(from, letter.message(), *this);
    if (!paused_) compute_all();
  }

  // ---- the scheduler ----

  void admit(WorkerId worker, std::int64_t iteration = 0, Session session = Session(1)) {
    sessions_[worker] = session;
    tell(kScheduler, msg::Admit{worker, session, Iteration(iteration), next_view()});
  }
  /// Admits every worker that has blocks here.
  void admit_all() {
    for (std::uint32_t i = 0; i < job_->plan.workers; ++i)
      if (!share_of(WorkerId(i)).buckets.empty()) admit(WorkerId(i));
  }
  msg::Fenced fence(WorkerId worker) {
    tell(kScheduler, msg::Fence{worker, next_view()});
    return sent_to<msg::Fenced>(kScheduler).back();
  }
  void remove(WorkerId worker) { tell(kScheduler, msg::Remove{worker, next_view()}); }
  /// The final state.
  msg::SnapshotState finish() {
    tell(kScheduler, msg::Finish{});
    return sent_to<msg::SnapshotState>(kMonitor).back();
  }

  // ---- workers ----

  /// True if the pull is answered at once.
  bool pull(WorkerId worker, std::int64_t iteration, std::int64_t own_clock) {
    tell(address_of(worker), msg::Pull{Iteration(iteration), Clock(own_clock)}, sessions_[worker]);
    return answered(worker, iteration);
  }
  bool pull(WorkerId worker, std::int64_t iteration) { return pull(worker, iteration, iteration); }
  bool answered(WorkerId worker, std::int64_t iteration) const {
    return pulled_.contains({worker, iteration});
  }
  /// The blocks of an answer.
  const std::vector<msg::BlockData>& weights(WorkerId worker, std::int64_t iteration) const {
    return pulled_.at({worker, iteration});
  }

  msg::Push push_of(WorkerId worker, std::int64_t iteration, std::uint32_t bucket) const {
    const auto& share = share_of(worker);
    msg::Push push{.iteration = Iteration(iteration),
                   .bucket = bucket,
                   .bucket_count = static_cast<std::uint32_t>(share.buckets.size()),
                   .weight = 1.0 / job_->stages->pipelines(),
                   .samples = job_->plan.batch};
    for (const BlockId id : share.buckets[bucket].blocks)
      push.blocks.push_back({id, version_of(worker, iteration, id), DType::f32,
                             Shape{job_->layout->block(id).floats},
                             gradient_of(*job_, id, worker, iteration)});
    return push;
  }
  void push(WorkerId worker, msg::Push push) {
    tell(address_of(worker), std::move(push), sessions_[worker]);
  }
  /// Sends a push that violates the protocol and hides it from the checkers. Returns the refusal.
  std::string push_unseen(WorkerId worker, msg::Push push) {
    shard_.on_message(address_of(worker),
                      encode({.session = sessions_[worker], .body = std::move(push)}), *this);
    return refusal(address_of(worker));
  }
  void push(WorkerId worker, std::int64_t iteration, std::uint32_t bucket) {
    push(worker, push_of(worker, iteration, bucket));
  }
  void push_empty(WorkerId worker, std::int64_t iteration, std::uint32_t bucket) {
    msg::Push push = push_of(worker, iteration, bucket);
    push.kind = msg::Push::Kind::empty;
    push.weight = 0;
    push.samples = 0;
    push.blocks.clear();
    this->push(worker, std::move(push));
  }
  void push_all(WorkerId worker, std::int64_t iteration) {
    for (std::uint32_t bucket = 0; bucket < share_of(worker).buckets.size(); ++bucket)
      push(worker, iteration, bucket);
  }

  // ---- results ----

  /// The messages of one kind that the shard has sent to `to` since the last call.
  template <class T>
  std::vector<T> sent_to(Address to) {
    std::vector<T> found;
    std::erase_if(sent_, [&](const sim::Letter& letter) {
      if (letter.to() != to || !letter.as<T>()) return false;
      found.push_back(*letter.as<T>());
      return true;
    });
    return found;
  }
  /// The buckets that have been acknowledged to a worker since the last call.
  std::vector<std::uint32_t> acknowledged(WorkerId worker) {
    std::vector<std::uint32_t> buckets;
    for (const auto& pushed : sent_to<msg::Pushed>(address_of(worker)))
      buckets.push_back(pushed.bucket);
    return buckets;
  }
  /// The reasons of the refusals since the last call.
  std::string refusal(Address of) {
    std::string texts;
    for (const auto& refused : sent_to<msg::Refused>(of))
      texts += std::string(name_of(refused.reason)) + ": " + refused.text;
    return texts;
  }
  /// The buckets of a worker that have been applied, in order.
  const std::vector<std::uint32_t>& applied(WorkerId worker) { return applied_[worker]; }

  /// Work waits until resume_work().
  void pause_work() { paused_ = true; }
  void resume_work() {
    paused_ = false;
    compute_all();
  }

 private:
  static std::vector<std::shared_ptr<sim::Observer>> watchers(
      const std::shared_ptr<const Job>& job) {
    std::vector<std::shared_ptr<sim::Observer>> watching;
    // The workers of a scene neither compute nor lease samples, so two checkers do not apply.
    for (const auto& checker : sim::all_checkers(job))
      if (!dynamic_cast<const sim::PipelineChecker*>(checker.get()) &&
          !dynamic_cast<const sim::SampleChecker*>(checker.get()))
        watching.push_back(checker);
    return watching;
  }
  View next_view() { return View(++views_); }
  /// The version of the weights that the iteration is computed on. In a pipeline that is never
  /// emptied, these were pulled for the iteration or for a later one.
  Version version_of(WorkerId worker, std::int64_t iteration, BlockId id) const {
    const auto pulled = pulled_.lower_bound({worker, iteration});
    if (pulled == pulled_.end() || pulled->first.first != worker) return Version();
    for (const auto& block : pulled->second)
      if (block.block == id) return block.version;
    return Version();
  }
  void compute_all() {
    while (!work_.empty()) {
      const auto work = std::move(work_.front());
      work_.pop_front();
      for (int part = 0; part < work->parts(); ++part) {
        work->run(part);
        shard_.on_part(*work, part, *this);
      }
    }
  }

  Instant now() const override { return now_; }
  Rng& random() override { return rng_; }
  void send(Address to, Message message) override {
    sim::Letter letter(address_of(id_), to, std::move(message));
    observers_.sent(now_, letter);
    observers_.delivered(now_, letter);
    if (const auto* weights = letter.as<msg::Weights>())
      pulled_[{WorkerId(to.index), weights->iteration.value()}] = weights->blocks;
    sent_.push_back(std::move(letter));
  }
  void after(Duration, TimerToken) override {}
  void compute(std::shared_ptr<Work> work) override { work_.push_back(std::move(work)); }
  void watch(Address) override {}
  void emit(const Event& event) override {
    if (const auto* applied = event.as<event::BucketApplied>())
      applied_[applied->worker].push_back(applied->bucket);
    observers_.event(now_, address_of(id_), event);
  }

  std::shared_ptr<const Job> job_;
  ShardId id_;
  Shard shard_;
  sim::Observers observers_;
  Instant now_;
  Rng rng_{1};
  std::uint64_t views_ = 0;
  bool paused_ = false;
  std::deque<std::shared_ptr<Work>> work_;
  std::vector<sim::Letter> sent_;
  std::map<WorkerId, Session> sessions_;
  std::map<std::pair<WorkerId, std::int64_t>, std::vector<msg::BlockData>> pulled_;
  std::map<WorkerId, std::vector<std::uint32_t>> applied_;
};

/// The weights of a state, by block.
inline std::map<BlockId, std::vector<float>> floats_of(const msg::SnapshotState& state) {
  std::map<BlockId, std::vector<float>> floats;
  for (const auto& block : state.blocks)
    floats[block.block].assign(block.data.as_floats(),
                               block.data.as_floats() + block.shape.count());
  return floats;
}

}  // namespace leeway::test
