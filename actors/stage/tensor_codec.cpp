#include "actors/stage/tensor_codec.hpp"

#include <utility>

#include "policies/codec/blobs.hpp"

namespace leeway {

msg::StageTensor TensorCodec::encode(const Shape& shape, Blob values) const {
  if (!codec_ || shape.count() == 0) return {DType::f32, shape, std::move(values)};
  return {DType::f32, shape, encode_blob(*codec_, values, shape.count()), id_};
}

Status TensorCodec::check(const msg::StageTensor& tensor) const {
  const bool is_encoded = codec_ && tensor.shape.count() > 0;
  if (tensor.codec != (is_encoded ? id_ : CodecId::none))
    return Error{"it has an encoding that the plan does not name"};
  return check_encoding(tensor.codec, tensor.data, tensor.shape.count(), id_, codec_.get());
}

Blob TensorCodec::decode(msg::StageTensor tensor) const {
  if (tensor.codec == CodecId::none) return std::move(tensor.data);
  return decode_blob(*codec_, tensor.data, tensor.shape.count());
}

}  // namespace leeway
