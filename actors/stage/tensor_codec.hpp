#pragma once
// TensorCodec: how the activations of a pipeline, or their gradients, are encoded between stages.
#include <memory>

#include "messages/tensors.hpp"
#include "policies/codec/codec.hpp"

namespace leeway {

class TensorCodec {
 public:
  explicit TensorCodec(const plan::Codec& spec) : id_(id_of(spec)), codec_(make_codec(spec)) {}

  /// A message's tensor of these f32 values. A tensor without elements is never encoded.
  msg::StageTensor encode(const Shape& shape, Blob values) const;
  /// Whether decode() can read a tensor of an unknown sender. The error names the fault.
  Status check(const msg::StageTensor& tensor) const;
  /// The values. Requires check().
  Blob decode(msg::StageTensor tensor) const;

 private:
  CodecId id_;
  std::shared_ptr<const Codec> codec_;  // null: none
};

}  // namespace leeway
