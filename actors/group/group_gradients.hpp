#pragma once
// GroupGradients: the gradients of one iteration of a host group, until each part of it is complete
// and can be summed.
#include <cstdint>
#include <optional>
#include <vector>

#include "actors/job.hpp"
#include "actors/worker/compute_work.hpp"

namespace leeway {

/// The blocks of a part in the order in which messages have them, and their gradients.
struct GroupPart {
  std::vector<BlockId> blocks;
  /// By worker of the group, the lead first: one gradient per block; empty: not arrived.
  std::vector<std::vector<Blob>> gradients;
};

class GroupGradients {
 public:
  /// `layers`: of each part. `workers`: those with samples, the lead included.
  GroupGradients(const Job& job, WorkerId lead, const std::vector<std::vector<int>>& layers,
                 std::uint32_t workers);

  /// The parts of worker `index` arrive in order. False if this is not the next one, or its blocks
  /// are not those of the part.
  bool add(std::uint32_t index, std::uint32_t part, std::vector<msg::BlockData> gradients);
  /// Whether every part of all workers, or of worker `index`, has arrived.
  bool is_complete() const;
  bool is_complete(std::uint32_t index) const { return arrived_[index] == parts_.size(); }
  /// Moves out the next part that has arrived from all workers; none if one is missing.
  std::optional<GroupPart> take();
  const std::vector<BlockId>& blocks(std::uint32_t part) const { return parts_[part].blocks; }

 private:
  const Layout& layout_;
  std::vector<GroupPart> parts_;
  std::vector<std::size_t> arrived_;  // by worker: number of parts
  std::size_t taken_ = 0;
};

/// The gradients of the layers that a part of a worker's computation has completed, in the order of
/// their buckets, shard by shard. Moves them out.
std::vector<msg::BlockData> take_gradients(const Job& job, WorkerId worker, ComputeWork& work,
                                           int part);
/// Whether a message has a block as it is, without an encoding.
bool is_plain(const msg::BlockData& given, const Block& block);

}  // namespace leeway
