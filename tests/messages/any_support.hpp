#pragma once
// Random values of the hand-written types in messages: tensors, addresses, nested messages.
#include "core/address.hpp"
#include "messages/message.hpp"
#include "messages/tensors.hpp"
#include "tests/support/any.hpp"

namespace leeway::test {

/// `Tensor` is a StageTensor or a BlockData. A blob may be larger than its tensor.
template <class Tensor>
void any_tensor(Tensor& out) {
  any_enum(out.dtype, DType::i32);
  std::vector<std::int64_t> extents;
  any_list(extents, [](auto& item) { any_between(item, 0, 4); });
  out.shape = Shape(extents);
  out.data = Blob::allocate(static_cast<std::size_t>(out.shape.count()) * size_of(out.dtype) +
                            *rc::gen::element<std::size_t>(0, 3, 64));
}
inline void any(msg::StageTensor& out) {
  any_tensor(out);
}
inline void any(msg::BlockData& out) {
  any_below(out.block, limits::kMaxBlocks);
  any(out.version);
  any_tensor(out);
}

inline void any(Blob& out) {
  out = Blob::allocate(any_index(9));
}
inline void any(Message& out) {
  std::vector<std::uint64_t> words;
  any_list(words, [](auto& item) { any(item); });
  out = Message(words, {});
}

inline void any(Address& out) {
  any_enum(out.kind, RoleKind::host);
  out.index = 0;
  if (out.kind == RoleKind::worker) any_below(out.index, limits::kMaxWorkers);
  if (out.kind == RoleKind::shard || out.kind == RoleKind::standby)
    any_below(out.index, limits::kMaxShards);
}

}  // namespace leeway::test
