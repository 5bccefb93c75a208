#pragma once
// Stage: a participant that trains a part of the model, in a pipeline with others.
//
// It does one operation of its schedule after the other, each as soon as what it reads is there:
// weights, the samples of the iteration, an activation of the stage before, a gradient of the next
// one. The first stage leases samples and says along the pipeline which iteration has which; a
// stage that has finished its part of an iteration pushes it, and pulls the next version of its
// weights when its schedule first reads it.
//
// Iterations end for a reason that the first stage knows: no samples, or a Stop. It says NoMore,
// each stage finishes what was begun before, and is idle, or stops. A stage that dies, or a broken
// link between two of them, ends the pipeline's start: all join again, and nothing of an earlier
// start is looked at.
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "actors/stage/stage_pass.hpp"
#include "actors/stage/stage_program.hpp"
#include "actors/worker/participant.hpp"

namespace leeway {

class Stage final : public Participant {
 public:
  Stage(std::shared_ptr<const Job> job, WorkerId id, std::uint32_t life = 1);
  ~Stage() override;

  void on_part(Work& work, int part, Outbox& out) override;
  void on_link(Address peer, Outbox& out) override;

 private:
  using Op = StageProgram::Op;
  /// For what the next operation waits: nothing, or samples of the scheduler; the stage before;
  /// the stage after; weights.
  enum class Wait : std::uint8_t { none, before, after, weights };
  /// Of a micro-batch at a part of the model: iteration, micro-batch, part.
  using Key = std::tuple<Iteration, std::uint32_t, std::uint32_t>;

  /// An iteration that has been said to have these samples.
  struct MiniBatch {
    LeasedIteration leased;
    std::int64_t micro_batches = 0;  // that have samples
    bool begun = false;
    std::vector<Version> versions;  // of the weights that the first forward read
    /// Per chunk: micro-batches whose backward has begun, and those whose gradients are added.
    std::vector<std::int64_t> backward, summed;
    double loss = 0;  // of the last part: the sum over samples
    std::int64_t correct = 0;

    std::int64_t first_of(std::int64_t micro_batch) const {
      return leased.samples() * micro_batch / micro_batches;
    }
    /// Samples of a micro-batch; 0 for those that the schedule has, and a short iteration not.
    std::int64_t size_of(std::int64_t micro_batch) const {
      if (micro_batch >= micro_batches) return 0;
      return first_of(micro_batch + 1) - first_of(micro_batch);
    }
  };
  /// A version of the weights, from its pull on until no operation reads it.
  struct Held {
    Iteration pulled;
    std::shared_ptr<BoundWeights> weights;  // null until they are here
  };

  void started(Iteration iteration, Outbox& out) override;
  void advance(Outbox& out) override;
  void forget() override;
  Clock acknowledged() const override;
  Clock trained() const override;
  bool take(Address from, Envelope& envelope, Outbox& out) override;

  // Messages of neighbours.
  void handle(Address from, msg::MiniBatch& mini_batch, Outbox& out);
  void handle(Address from, const msg::NoMore& no_more, Outbox& out);
  void handle(Address from, msg::Activation& activation, Outbox& out);
  void handle(Address from, msg::OutputGradient& gradient, Outbox& out);
  void handle(Address from, const msg::GivenUp& given_up, Outbox& out);
  /// What is wrong with a tensor for the micro-batch `key` that comes from a part's stage, and is
  /// of the model before layer `end`, or has no elements if it is not `wanted`; empty when it fits.
  std::string misfit(Address from, Address expected, const Key& key, int end, bool wanted,
                     const msg::StageTensor& tensor) const;
  /// True when the message is not for the present Start: it is kept for the one that it is for, or
  /// is stale.
  template <class T>
  bool is_for_another_start(Address from, T& message, Outbox& out);

  // What is said along the pipeline.
  void announce(Outbox& out);
  void begin_iteration(Iteration iteration, LeasedIteration leased, Outbox& out);
  void end_at(Iteration iteration, Outbox& out);
  void give_up(Iteration iteration, Outbox& out);
  void send_tensor(const StageWork& work, Blob data, Outbox& out);

  // Operations.
  void pull_versions(Outbox& out);
  /// Begins the next operation, or does what takes no time; false when it has to wait.
  bool step(Outbox& out);
  /// Counts the time since the last call to what was waited for until now. False.
  bool wait_for(Wait what, Outbox& out);
  /// Says that an iteration begins, the first time.
  void begin(Iteration iteration, MiniBatch& mini_batch, Outbox& out);
  bool start_forward(const Op& op, MiniBatch& mini_batch, Outbox& out);
  bool start_backward(const Op& op, MiniBatch& mini_batch, Outbox& out);
  void update(const Op& op, MiniBatch& mini_batch, Outbox& out);
  /// A version of the weights; null while it is not here.
  std::shared_ptr<BoundWeights> weights_for(std::int64_t version, Outbox& out);
  /// Nothing goes forward on those before `end` any more, also where nothing has: the last
  /// iteration may have fewer micro-batches than the schedule.
  void forget_versions(std::map<std::int64_t, Held>::iterator end);
  std::shared_ptr<StageMicroBatch> micro_batch_of(const Op& op, const MiniBatch& mini_batch,
                                                  std::shared_ptr<BoundWeights> weights) const;
  void compute(const Op& op, StageWork::Task task, Outbox& out);
  void push_layers(int part, Outbox& out);
  void finish_operation(Outbox& out);
  /// Keeps in mind what is held now, if it is the most so far.
  void note_memory();
  void finish_iteration(Iteration iteration, const MiniBatch& mini_batch, Outbox& out);
  void say_done_if_done(Outbox& out);

  /// Of an operation at a part: what its activation, its gradient and its micro-batch are called.
  Key key_of(const Op& op) const {
    return {iteration_of(op), static_cast<std::uint32_t>(op.micro_batch), part_of(op.chunk)};
  }
  Iteration iteration_of(const Op& op) const { return base_ + op.iteration; }
  std::uint32_t part_of(int chunk) const {
    return static_cast<std::uint32_t>(chunk) * job_->stages->count() + stage_;
  }
  const ModelChunk& range_of(std::uint32_t part) const { return job_->stages->chunks()[part]; }
  std::uint32_t parts() const { return static_cast<std::uint32_t>(job_->stages->chunks().size()); }
  Address stage_address(std::uint32_t stage) const {
    return address_of(job_->stages->worker(job_->stages->lead_of(id_), stage));
  }
  Address stage_of_chunk(std::uint32_t part) const {
    return stage_address(part % job_->stages->count());
  }
  /// Of this pipeline, the stage before, or the one behind.
  bool is_neighbour(Address peer) const;
  bool is_lead() const { return stage_ == 0; }
  bool is_last_stage() const { return stage_ + 1 == job_->stages->count(); }
  std::shared_ptr<StagePass> make_pass() const;
  /// Lets go of weights and micro-batches, some of which a work may be reading.
  void let_go();

  std::uint32_t stage_;
  std::vector<WorkerId> neighbours_;
  std::shared_ptr<StagePass> pass_;
  StageProgram program_;
  std::vector<bool> gradient_wanted_;  // of each part's output

  // Of the present Start:
  Iteration base_;                     // where it began
  std::int64_t next_op_ = 0;           // of the program
  std::int64_t finished_ = 0;          // iterations, from base_ on, that are pushed
  std::vector<std::int64_t> updated_;  // per chunk, likewise
  Iteration announced_;                // next iteration to be told of
  std::optional<Iteration> end_;       // there is none from here on
  bool given_up_ = false;
  Clock behind_;  // iterations acknowledged to all stages behind this one
  std::map<Iteration, MiniBatch> mini_batches_;
  std::map<std::int64_t, Held> held_;  // by version
  bool may_pull_ = false;              // there may be a version that is to be pulled
  std::map<Key, Blob> activations_, gradients_;
  std::map<Key, std::shared_ptr<StageMicroBatch>> in_flight_;
  std::shared_ptr<StageWork> work_;
  Op working_on_;

  std::vector<std::pair<Address, Envelope>> early_;  // of Starts that are yet to come

  Instant idle_since_, work_since_, iteration_since_;
  Wait waits_for_ = Wait::none;
  Instant waits_since_;
  std::optional<Instant> blocked_since_;  // weights are all that is missing
  Duration blocked_;                      // by that, in this iteration
};

}  // namespace leeway
