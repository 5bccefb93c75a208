#pragma once
// Worker: a participant that trains the whole model. It computes gradients and pushes them layer by
// layer while backward goes on.
//
// While running it computes when it has samples and weights, waits for weights when it has samples
// alone, and waits for the scheduler when it has neither.
#include <memory>
#include <optional>
#include <vector>

#include "actors/worker/participant.hpp"
#include "actors/worker/step.hpp"

namespace leeway {

class Worker final : public Participant {
 public:
  Worker(std::shared_ptr<const Job> job, WorkerId id, std::uint32_t life = 1);

  void on_part(Work& work, int part, Outbox& out) override;

 private:
  void started(Iteration iteration, Outbox& out) override;
  void advance(Outbox& out) override;
  void forget() override;
  Clock acknowledged() const override;
  bool take(Address from, Envelope& envelope, Outbox& out) override;

  void handle(Address from, const msg::PushDropped& late, Outbox& out);
  void stop_if_done(Outbox& out);
  void pull(Iteration iteration, Outbox& out);
  void start_step(Outbox& out);
  void push_layer(int layer, Outbox& out);
  void finish_iteration(Iteration iteration, std::int64_t samples, Outbox& out);
  /// The samples at the positions that were leased.
  StepSamples samples_of(const LeasedIteration& leased) const;
  std::shared_ptr<StepBuffers> make_buffers() const;

  std::shared_ptr<StepBuffers> buffers_;
  bool late_ = false;  // nobody wants what is being computed any more

  Iteration next_;  // to start
  std::shared_ptr<Step> step_;
  PushedIteration pushed_;  // by that step
  std::vector<Version> step_versions_;

  Instant waiting_since_;
  Instant step_since_;
};

}  // namespace leeway
