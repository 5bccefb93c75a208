#pragma once
// StageSender: the messages that a stage sends along its pipeline.
#include <cstdint>

#include "actors/outbox.hpp"
#include "actors/stage/stage_position.hpp"
#include "actors/stage/tensor_codec.hpp"
#include "actors/worker/lease_queue.hpp"
#include "messages/envelope.hpp"

namespace leeway {

class StageSender {
 public:
  /// Keeps a reference to `position`.
  StageSender(const StagePosition& position, const plan::Compression& compress)
      : position_(position),
        activations_(compress.activations),
        gradients_(compress.activation_gradients) {}

  /// Sets the session of all further messages.
  void begin(Session session) { session_ = session; }

  /// Sends the samples of an iteration, or NoMore, to the next stage. Without effect in the last
  /// stage.
  void send_mini_batch(Iteration iteration, const LeasedIteration& leased, Outbox& out) const;
  void send_no_more(Iteration iteration, Outbox& out) const;
  /// Sends GivenUp to both neighbours: the pipeline stops training.
  void send_given_up(Iteration iteration, Outbox& out) const;

  // Both count the bytes of their tensors in `report`.

  /// Sends the output of a forward to the stage of the next chunk. Without effect for the model's
  /// last chunk.
  void send_activation(const MicroBatchKey& of, std::int64_t samples, Blob data,
                       msg::WorkerReport& report, Outbox& out) const;
  /// Sends the input gradient of a backward to the stage of the previous chunk, without elements if
  /// that chunk does not need it. Without effect for the model's first chunk. `trained`: the
  /// iterations that this stage and all later ones have trained.
  void send_gradient(const MicroBatchKey& of, std::int64_t samples, Blob data, Clock trained,
                     msg::WorkerReport& report, Outbox& out) const;
  /// Sends a GradientNorm to a neighbour.
  void send_norm(Address to, Iteration iteration, double squares, Outbox& out) const {
    send(to, msg::GradientNorm{iteration, squares}, out);
  }

 private:
  void send(Address to, Body body, Outbox& out) const;

  const StagePosition& position_;
  TensorCodec activations_, gradients_;
  Session session_;
};

}  // namespace leeway
