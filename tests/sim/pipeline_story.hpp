#pragma once
// PipelineStory: the events and messages of a pipeline, for tests of its checker.
#include <memory>
#include <string>

#include "sim/checkers/pipelines.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::sim {

inline const Address kPipelineShard = address_of(ShardId(0));

inline Plan pipeline_plan(const std::string& schedule, std::uint32_t micro_batches) {
  Plan plan = test::tiny_plan();
  plan.workers = 2;
  plan.shards = 1;
  plan.batch = 2 * micro_batches;
  plan.micro_batches = micro_batches;
  plan.pipeline.stages = 2;
  plan.pipeline.schedule = schedule;
  return plan;
}

/// A pipeline of two stages and one shard, with short names for events and messages. Stage i is
/// worker i and computes chunk i.
class PipelineStory {
 public:
  using Operation = event::StageComputed::Operation;

  explicit PipelineStory(const Plan& plan) : job_(test::job_of(plan)), checker_(job_) {}

  void joins(std::uint32_t stage) { sent(worker(stage), kScheduler, msg::Join{nonce}); }
  void starts(std::uint32_t stage) {
    delivers(kScheduler, worker(stage), msg::Start{Iteration(0), nonce});
  }
  void announces(msg::MiniBatch mini_batch) {
    sends_and_delivers(worker(0), worker(1), mini_batch);
  }
  void announces(std::int64_t iteration, std::int64_t samples) {
    announces({.iteration = Iteration(iteration), .begin = 0, .end = samples});
  }
  void no_more(std::int64_t iteration) {
    sends_and_delivers(worker(0), worker(1), msg::NoMore{Iteration(iteration)});
  }
  void sends_pull(std::uint32_t stage, std::int64_t pull, std::int64_t own_clock) {
    sent(worker(stage), kPipelineShard, msg::Pull{Iteration(pull), Clock(own_clock)});
  }
  void answered(std::uint32_t stage, std::int64_t pull, std::int64_t version) {
    msg::Weights weights{.iteration = Iteration(pull)};
    for (const BlockId id : share(stage).at[0].blocks) weights.blocks.push_back(block(id, version));
    delivers(kPipelineShard, worker(stage), weights);
  }
  void pulls(std::uint32_t stage, std::int64_t pull, std::int64_t own_clock) {
    sends_pull(stage, pull, own_clock);
    answered(stage, pull, own_clock);
  }
  void activation(std::int64_t iteration, std::uint32_t micro_batch, std::int64_t samples = 2) {
    sends_and_delivers(worker(0), worker(1),
                       msg::Activation{Iteration(iteration), micro_batch, 1, tensor(samples)});
  }
  void gradient(std::int64_t iteration, std::uint32_t micro_batch) {
    sends_and_delivers(
        worker(1), worker(0),
        msg::OutputGradient{Iteration(iteration), micro_batch, 0, tensor(2), Clock()});
  }
  /// An empty gradient, for a first stage without weights.
  void empty_gradient(std::int64_t iteration, std::uint32_t micro_batch) {
    const msg::StageTensor nothing{DType::f32, Shape{0}, Blob::floats(0)};
    sends_and_delivers(worker(1), worker(0),
                       msg::OutputGradient{Iteration(iteration), micro_batch, 0, nothing, Clock()});
  }
  void computes(Operation operation, std::uint32_t stage, std::int64_t iteration,
                std::uint32_t micro_batch, std::int64_t pull) {
    computes_chunk(operation, stage, stage, iteration, micro_batch, pull);
  }
  void computes_chunk(Operation operation, std::uint32_t stage, std::uint32_t chunk,
                      std::int64_t iteration = 0, std::uint32_t micro_batch = 0,
                      std::int64_t pull = 0) {
    checker_.on_event({}, worker(stage),
                      event::StageComputed{.worker = WorkerId(stage),
                                           .operation = operation,
                                           .iteration = Iteration(iteration),
                                           .chunk = chunk,
                                           .micro_batch = micro_batch,
                                           .pull = Iteration(pull)});
  }
  void forward(std::uint32_t stage, std::int64_t iteration, std::uint32_t micro_batch,
               std::int64_t pull) {
    computes(Operation::forward, stage, iteration, micro_batch, pull);
  }
  void backward(std::uint32_t stage, std::int64_t iteration, std::uint32_t micro_batch,
                std::int64_t pull) {
    computes(Operation::backward_inputs, stage, iteration, micro_batch, pull);
    computes(Operation::backward_weights, stage, iteration, micro_batch, pull);
  }
  void pushes(std::uint32_t stage, std::int64_t iteration, std::int64_t version,
              msg::Push::Kind kind = msg::Push::Kind::gradient) {
    for (const Bucket& bucket : share(stage).at[0].buckets) {
      msg::Push push{.iteration = Iteration(iteration), .bucket = bucket.index, .kind = kind};
      push.bucket_count = static_cast<std::uint32_t>(share(stage).at[0].buckets.size());
      for (const BlockId id : bucket.blocks) push.blocks.push_back(block(id, version));
      if (kind == msg::Push::Kind::empty) push.blocks.clear();
      delivers(worker(stage), kPipelineShard, push);
    }
  }
  void finishes(std::uint32_t stage, std::int64_t iteration, std::int64_t samples) {
    checker_.on_event({}, worker(stage),
                      event::StepFinished{WorkerId(stage), Iteration(iteration), samples});
  }
  void sent(Address from, Address to, Body body) {
    checker_.on_sent({}, letter(from, to, std::move(body)));
  }
  void delivers(Address from, Address to, Body body) {
    checker_.on_delivered({}, letter(from, to, std::move(body)));
  }
  void restarts(std::uint32_t stage) { checker_.on_restarted({}, worker(stage)); }

  static Address worker(std::uint32_t stage) { return address_of(WorkerId(stage)); }

  Session session{1};
  JoinNonce nonce = first_nonce(1);

 private:
  void sends_and_delivers(Address from, Address to, const Body& body) {
    sent(from, to, body);
    delivers(from, to, body);
  }
  Letter letter(Address from, Address to, Body body) const {
    return {from, to, encode({.session = session, .body = std::move(body)})};
  }
  const StageShare& share(std::uint32_t stage) const { return job_->stages->share(stage); }
  static msg::StageTensor tensor(std::int64_t samples) {
    return {DType::f32, Shape{samples, 3}, Blob::floats(samples * 3)};
  }
  msg::BlockData block(BlockId id, std::int64_t version) const {
    const std::int64_t floats = job_->layout->block(id).floats;
    return {id, Version(version), DType::f32, Shape{floats}, Blob::floats(floats)};
  }

  std::shared_ptr<const Job> job_;
  PipelineChecker checker_;
};

}  // namespace leeway::sim
