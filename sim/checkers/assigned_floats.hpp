#pragma once
// for_each_assigned(): the floats that a push assigns, for checkers.
#include <cstdint>

#include "actors/job.hpp"
#include "messages/envelope.hpp"

namespace leeway::sim {

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
    const auto& spec = job.model->parameters()[static_cast<std::size_t>(slice.parameter)].spec;
    handle(slice.offset, slice.offset + slice.rows * spec.shape.row_count());
  }
}

}  // namespace leeway::sim
