#pragma once
// pushed_floats() and for_each_assigned(): what a push means for a block, for checkers.
#include <cstdint>

#include "actors/job.hpp"
#include "messages/envelope.hpp"
#include "policies/codec/blobs.hpp"

namespace leeway::sim {

/// The floats of the push's block `index` on the host, decoded.
inline Blob pushed_floats(const Job& job, const msg::Push& push, std::size_t index) {
  const msg::BlockData& block = push.blocks[index];
  if (block.codec == CodecId::none) return block.data.on_host();
  Blob values = decode_blob(job.push_codecs->at(push.iteration), block.data, block.shape.count());
  zero_padding(job.layout->block(block.block), values.mutable_floats());
  return values;
}

/// Calls `handle(begin, end)` for the floats of each slice of the push's block `index` that it
/// assigns.
template <class Handle>
void for_each_assigned(const Job& job, const msg::Push& push, std::size_t index, Handle handle) {
  std::uint32_t first = 0;  // number of the block's first slice in the bucket
  for (std::size_t i = 0; i < index; ++i)
    first += static_cast<std::uint32_t>(job.layout->block(push.blocks[i].block).slices.size());
  const Block& block = job.layout->block(push.blocks[index].block);
  for (const std::uint32_t number : push.assigned) {
    if (number < first || number >= first + block.slices.size()) continue;
    const BlockSlice& slice = block.slices[number - first];
    handle(slice.offset, slice.offset + slice.floats);
  }
}

}  // namespace leeway::sim
