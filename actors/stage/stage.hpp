#pragma once
// Stage: a participant that trains its chunks of the model, in a pipeline with other stages.
//
// It does the operations of its schedule in order, each as soon as its inputs have arrived:
// weights, the samples of the iteration, an activation of the model's previous chunk, a gradient of
// the next one. Those chunks are on other stages or on this one (pipeline::Placement). The first
// stage leases samples, and announces each iteration along the pipeline. A stage pushes its
// gradients when it has finished its backwards of an iteration, and pulls the next version of its
// weights before its schedule reads it.
//
// Without further samples, or after a Stop, the first stage sends NoMore. Each stage finishes the
// announced iterations, and then is idle or stops. A stage that dies, or a broken link between two
// stages, ends the pipeline's session: all stages join again and ignore messages of earlier
// sessions.
//
// Its components, each with a separate test: StagePosition, StageProgress, StageInputs,
// StageSender, StageNorms, WeightVersions, MicroBatchesInFlight, StageIteration and StageWaits.
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "actors/stage/micro_batches_in_flight.hpp"
#include "actors/stage/stage_inputs.hpp"
#include "actors/stage/stage_iteration.hpp"
#include "actors/stage/stage_norms.hpp"
#include "actors/stage/stage_position.hpp"
#include "actors/stage/stage_progress.hpp"
#include "actors/stage/stage_sender.hpp"
#include "actors/stage/stage_waits.hpp"
#include "actors/stage/weight_versions.hpp"
#include "actors/worker/compute_work.hpp"
#include "actors/worker/participant.hpp"

namespace leeway {

class Stage final : public Participant {
 public:
  Stage(std::shared_ptr<const Job> job, WorkerId id, std::uint32_t launch = 1);
  ~Stage() override;

  void on_part(Work& work, int part, Outbox& out) override;
  void on_link(Address peer, Outbox& out) override;

 private:
  using Op = StageProgram::Op;

  // stage.cpp: membership, and the messages of neighbours.
  void started(const msg::Start& start, Outbox& out) override;
  void advance(Outbox& out) override;
  void forget() override;
  Clock acknowledged() const override;
  Clock trained() const override;
  bool take(Address from, Envelope& envelope, Outbox& out) override;
  void handle(Address from, msg::MiniBatch& mini_batch, Outbox& out);
  void handle(Address from, const msg::NoMore& no_more, Outbox& out);
  void handle(Address from, msg::Activation& activation, Outbox& out);
  void handle(Address from, msg::OutputGradient& gradient, Outbox& out);
  void handle(Address from, const msg::GivenUp& given_up, Outbox& out);
  void handle(Address from, const msg::GradientNorm& norm, Outbox& out);
  /// First stage: announces the iterations that it has leased.
  void announce(Outbox& out);
  void announce_iteration(Iteration iteration, LeasedIteration leased, Outbox& out);
  void announce_end(Iteration end, Outbox& out);
  /// Stops training after a loss that is not finite.
  void give_up(Iteration iteration, Outbox& out);

  // stage_operations.cpp.
  void pull_versions(Outbox& out);
  /// Begins the next operation, or skips one without work; false if it has to wait.
  bool step(Outbox& out);
  bool wait_for(StageWait what, Outbox& out);  // returns false
  bool start_forward(const Op& op, StageIteration& of, Outbox& out);
  bool start_backward(const Op& op, StageIteration& of, Outbox& out);
  void update(const Op& op, StageIteration& of, Outbox& out);
  /// Reports the begin of the iteration, once.
  void begin(Iteration iteration, StageIteration& of, Outbox& out);
  void compute(const Op& op, ComputeWork::Task task, Outbox& out);
  void push_layers(int part, Outbox& out);
  /// Pushes the gradients that have waited for the norm of the pipeline.
  void push_held(Iteration iteration, StageIteration& of, Outbox& out);
  void finish_operation(Outbox& out);
  /// Passes the output of a forward or of a backward for inputs on to the stage that reads it.
  void pass_on(const MicroBatchKey& of, bool forward, std::int64_t samples, Blob output,
               Outbox& out);
  void finish_iteration(Iteration iteration, const StageIteration& of, Outbox& out);

  MicroBatchKey key_of(const Op& op) const {
    return {progress_.iteration_of(op), static_cast<std::uint32_t>(op.micro_batch),
            position_.model_chunk(op.chunk)};
  }
  /// Samples of a micro-batch; empty if its iteration is not announced.
  std::optional<std::int64_t> samples_of(Iteration iteration, std::uint32_t micro_batch) const;

  const StagePosition position_;
  StageSender sender_;

  // Of the present session:
  StageProgress progress_;
  StageInputs inputs_;
  WeightVersions weights_;
  MicroBatchesInFlight in_flight_;
  StageNorms norms_;
  std::map<Iteration, StageIteration> iterations_;  // announced, and not finished
  bool may_pull_ = false;                           // a version may have become readable
  bool given_up_ = false;
  Clock behind_;  // iterations that all stages behind this one have trained

  std::shared_ptr<ComputeWork> work_;
  Op working_on_;

  StageWaits waits_;
  Instant work_since_, iteration_since_;
};

}  // namespace leeway
