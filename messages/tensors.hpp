#pragma once
// Tensors of a message: references in its header, data in its blobs.
#include <vector>

#include "core/ids.hpp"
#include "tensor/blob.hpp"
#include "tensor/codec_id.hpp"
#include "tensor/dtype.hpp"
#include "tensor/shape.hpp"

namespace leeway::msg {

/// A block's weights or gradient. `data` is empty in an empty push, otherwise at least
/// shape.count() elements, or an encoding of them that its receiver must check.
struct BlockData {
  BlockId block;
  Version version;
  DType dtype = DType::f32;
  Shape shape;
  Blob data;
  CodecId codec = CodecId::none;
  bool operator==(const BlockData&) const = default;
};

/// `data` is never empty: at least shape.count() elements, or an encoding of them that its receiver
/// must check.
struct StageTensor {
  DType dtype = DType::f32;
  Shape shape;
  Blob data;
  CodecId codec = CodecId::none;
  bool operator==(const StageTensor&) const = default;
};

}  // namespace leeway::msg
