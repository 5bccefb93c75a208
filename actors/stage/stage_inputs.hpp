#pragma once
// StageInputs: activations and gradients that a stage has received and not used yet.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "actors/stage/stage_position.hpp"
#include "actors/stage/tensor_codec.hpp"
#include "messages/stage_stage.hpp"

namespace leeway {

class StageInputs {
 public:
  /// Keeps a reference to `position`.
  StageInputs(const StagePosition& position, const plan::Compression& compress)
      : position_(position),
        activation_codec_(compress.activations),
        gradient_codec_(compress.activation_gradients) {}

  /// Keeps the tensor of a message, and ignores a repeated one. `samples`: of its micro-batch;
  /// empty if its iteration has not been announced. Returns the error; empty if the message is
  /// valid.
  std::string receive(Address from, msg::Activation& message, std::optional<std::int64_t> samples);
  std::string receive(Address from, msg::OutputGradient& message,
                      std::optional<std::int64_t> samples);

  /// Keeps the output of another chunk of this stage for the chunk of `key`.
  void keep_activation(const MicroBatchKey& key, Blob data) {
    activations_.emplace(key, std::move(data));
  }
  void keep_gradient(const MicroBatchKey& key, Blob data) {
    gradients_.emplace(key, std::move(data));
  }

  /// The activation that a forward of this chunk reads; null until it arrives.
  const Blob* activation(const MicroBatchKey& key) const { return find(activations_, key); }
  void erase_activation(const MicroBatchKey& key) { activations_.erase(key); }
  /// Moves out the gradient that a backward of this chunk reads; empty until it arrives. The
  /// gradient has no elements if the chunk does not need it (see
  /// StagePosition::needs_output_gradient).
  std::optional<Blob> take_gradient(const MicroBatchKey& key);

  void forget_below(Iteration iteration);
  void clear();

 private:
  using Tensors = std::map<MicroBatchKey, Blob>;
  static const Blob* find(const Tensors& tensors, const MicroBatchKey& key);
  std::string validate(Address from, Address expected, const MicroBatchKey& key,
                       const msg::StageTensor& tensor, const TensorCodec& codec,
                       std::optional<std::int64_t> samples, const Shape& shape) const;

  const StagePosition& position_;
  TensorCodec activation_codec_, gradient_codec_;
  Tensors activations_, gradients_;
};

}  // namespace leeway
