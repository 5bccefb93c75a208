#pragma once
// CodecId: how the bytes of a tensor in a message encode its values (policies/codec).
#include <cstdint>

namespace leeway {

/// In the order of plan::Codec and of messages/common.capnp.
enum class CodecId : std::uint8_t {
  none,
  bf16,
  fp16,
  int8,
  int4,
  two_bit,
  one_bit,
  top_k,
  random_k
};

}  // namespace leeway
