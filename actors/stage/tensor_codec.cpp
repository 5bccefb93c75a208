#include "actors/stage/tensor_codec.hpp"

#include <utility>

namespace leeway {

msg::StageTensor TensorCodec::encode(const Shape& shape, Blob values) const {
  const auto count = static_cast<std::size_t>(shape.count());
  if (!codec_ || count == 0) return {DType::f32, shape, std::move(values)};
  const Blob host = values.on_host();
  Blob encoded = Blob::allocate(codec_->size(count));
  codec_->encode({host.as_floats(), count}, 0, {encoded.mutable_data(), encoded.size()});
  return {DType::f32, shape, std::move(encoded), id_};
}

Status TensorCodec::check(const msg::StageTensor& tensor) const {
  const bool is_encoded = codec_ && tensor.shape.count() > 0;
  if (tensor.codec != (is_encoded ? id_ : CodecId::none))
    return Error{"it has an encoding that the plan does not name"};
  if (!is_encoded) return {};
  return codec_->check(tensor.data.bytes(), static_cast<std::size_t>(tensor.shape.count()));
}

Blob TensorCodec::decode(msg::StageTensor tensor) const {
  if (tensor.codec == CodecId::none) return std::move(tensor.data);
  Blob values = Blob::floats(tensor.shape.count());
  codec_->decode(tensor.data.bytes(),
                 {values.mutable_floats(), static_cast<std::size_t>(tensor.shape.count())});
  return values;
}

}  // namespace leeway
