#include "actors/stage/stage_inputs.hpp"

#include <utility>

#include "core/text.hpp"

namespace leeway {

std::string StageInputs::receive(Address from, msg::Activation& message,
                                 std::optional<std::int64_t> samples) {
  const MicroBatchKey key{message.iteration, message.micro_batch, message.chunk};
  if (message.chunk == 0 || !position_.owns(message.chunk))
    return concat("activation: chunk ", message.chunk, " is not here");
  const Shape shape = position_.input_shape(message.chunk, samples.value_or(0));
  const std::string error = validate(from, position_.owner_of(message.chunk - 1), key,
                                     message.tensor, activation_codec_, samples, shape);
  if (!error.empty()) return concat("activation: ", error);
  if (!activations_.contains(key))
    activations_.emplace(key, activation_codec_.decode(std::move(message.tensor)));
  return {};
}

std::string StageInputs::receive(Address from, msg::OutputGradient& message,
                                 std::optional<std::int64_t> samples) {
  const MicroBatchKey key{message.iteration, message.micro_batch, message.chunk};
  if (message.chunk + 1 == position_.model_chunks() || !position_.owns(message.chunk))
    return concat("gradient: chunk ", message.chunk, " is not here");
  const Shape shape = position_.needs_output_gradient(message.chunk)
                          ? position_.output_shape(message.chunk, samples.value_or(0))
                          : Shape{0};
  const std::string error = validate(from, position_.owner_of(message.chunk + 1), key,
                                     message.tensor, gradient_codec_, samples, shape);
  if (!error.empty()) return concat("gradient: ", error);
  if (!gradients_.contains(key))
    gradients_.emplace(key, gradient_codec_.decode(std::move(message.tensor)));
  return {};
}

std::string StageInputs::validate(Address from, Address expected, const MicroBatchKey& key,
                                  const msg::StageTensor& tensor, const TensorCodec& codec,
                                  std::optional<std::int64_t> samples, const Shape& shape) const {
  const auto& [iteration, micro_batch, model_chunk] = key;
  if (from != expected)
    return concat(from, " does not send to chunk ", model_chunk, "; ", expected, " does");
  if (!samples) return concat("iteration ", iteration, " is not under way");
  if (*samples == 0) return concat("micro-batch ", micro_batch, " has no samples");
  if (tensor.dtype == DType::f32 && tensor.shape == shape) {
    const Status valid = codec.check(tensor);
    return valid ? "" : concat("the tensor of micro-batch ", micro_batch, ": ", valid.error().text);
  }
  return concat("the tensor of micro-batch ", micro_batch, " is ", tensor.shape, " x ",
                name_of(tensor.dtype), ", not ", shape, " x f32");
}

const Blob* StageInputs::find(const Tensors& tensors, const MicroBatchKey& key) {
  const auto found = tensors.find(key);
  return found == tensors.end() ? nullptr : &found->second;
}

std::optional<Blob> StageInputs::take_gradient(const MicroBatchKey& key) {
  const auto found = gradients_.find(key);
  if (found == gradients_.end()) return std::nullopt;
  Blob gradient = std::move(found->second);
  gradients_.erase(found);
  return gradient;
}

void StageInputs::forget_below(Iteration iteration) {
  const MicroBatchKey end{iteration, 0, 0};
  activations_.erase(activations_.begin(), activations_.lower_bound(end));
  gradients_.erase(gradients_.begin(), gradients_.lower_bound(end));
}

void StageInputs::clear() {
  activations_.clear();
  gradients_.clear();
}

}  // namespace leeway
