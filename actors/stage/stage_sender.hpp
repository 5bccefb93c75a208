#pragma once
// StageSender: the messages that a stage sends along its pipeline.
#include <cstdint>

#include "actors/outbox.hpp"
#include "actors/stage/stage_position.hpp"
#include "actors/worker/lease_queue.hpp"
#include "messages/envelope.hpp"

namespace leeway {

class StageSender {
 public:
  /// Keeps a reference to `position`.
  explicit StageSender(const StagePosition& position) : position_(position) {}

  /// The numbers that messages carry from now on.
  void begin(Incarnation incarnation, std::uint64_t start) {
    incarnation_ = incarnation;
    start_ = start;
  }

  /// To the next stage: the samples of an iteration, or that no iteration follows. The last stage
  /// sends nothing.
  void send_mini_batch(Iteration iteration, const LeasedIteration& leased, Outbox& out) const;
  void send_no_more(Iteration iteration, Outbox& out) const;
  /// To the previous stage: the pipeline trains no further. The first stage sends nothing.
  void send_given_up(Iteration iteration, Outbox& out) const;

  /// The output of a forward, to the stage of the next chunk. Nothing after the model's last chunk.
  void send_activation(const MicroBatchKey& of, std::int64_t samples, Blob data, Outbox& out) const;
  /// The input gradient of a backward, to the stage of the previous chunk; without elements if that
  /// chunk does not need it. Nothing before the model's first chunk. `trained`: the iterations that
  /// this stage and those behind it have trained.
  void send_gradient(const MicroBatchKey& of, std::int64_t samples, Blob data, Clock trained,
                     Outbox& out) const;

 private:
  void send(Address to, Body body, Outbox& out) const;

  const StagePosition& position_;
  Incarnation incarnation_{1};
  std::uint64_t start_ = 0;
};

}  // namespace leeway
