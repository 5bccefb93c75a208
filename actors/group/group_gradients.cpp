#include "actors/group/group_gradients.hpp"

#include <algorithm>
#include <utility>

#include "core/mutant.hpp"

namespace leeway {

namespace {

std::vector<BlockId> blocks_of_layers(const Job& job, WorkerId worker,
                                      const std::vector<int>& layers) {
  std::vector<BlockId> blocks;
  for (const int layer : layers)
    job.stages->computed_by(worker).for_each_block(layer,
                                                   [&](BlockId block) { blocks.push_back(block); });
  return blocks;
}

}  // namespace

std::vector<msg::BlockData> take_gradients(const Job& job, WorkerId worker, ComputeWork& work,
                                           int part) {
  std::vector<msg::BlockData> gradients;
  for (const BlockId id : blocks_of_layers(job, worker, work.layers_of(part)))
    gradients.push_back({id, work.versions()[id.value()], DType::f32,
                         Shape{job.layout->block(id).floats}, work.take_gradient(id)});
  return gradients;
}

bool is_plain(const msg::BlockData& given, const Block& block) {
  return given.block == block.id && given.data && given.dtype == DType::f32 &&
         given.codec == CodecId::none && given.shape.count() == block.floats;
}

GroupGradients::GroupGradients(const Job& job, WorkerId lead,
                               const std::vector<std::vector<int>>& layers, std::uint32_t workers)
    : layout_(*job.layout), arrived_(workers) {
  for (const auto& of_part : layers)
    parts_.push_back(
        {blocks_of_layers(job, lead, of_part), std::vector<std::vector<Blob>>(workers)});
}

bool GroupGradients::add(std::uint32_t index, std::uint32_t part,
                         std::vector<msg::BlockData> gradients) {
  if (part != arrived_[index] || part >= parts_.size()) return false;
  const auto& blocks = parts_[part].blocks;
  const auto fits = [&](const msg::BlockData& gradient, BlockId block) {
    return is_plain(gradient, layout_.block(block));
  };
  if (!std::ranges::equal(gradients, blocks, fits)) return false;
  for (auto& gradient : gradients)
    parts_[part].gradients[index].push_back(std::move(gradient.data));
  ++arrived_[index];
  return true;
}

bool GroupGradients::is_complete() const {
  return std::ranges::all_of(arrived_, [&](std::size_t count) { return count == parts_.size(); });
}

std::optional<GroupPart> GroupGradients::take() {
  std::size_t workers = arrived_.size();
  if (workers > 1 && planted(Mutant::group_gradient_not_awaited)) --workers;
  const auto has_arrived = [&](std::size_t worker) { return arrived_[worker] > taken_; };
  if (taken_ == parts_.size()) return std::nullopt;
  for (std::size_t worker = 0; worker < workers; ++worker)
    if (!has_arrived(worker)) return std::nullopt;
  GroupPart part = std::move(parts_[taken_++]);
  part.gradients.resize(workers);
  return part;
}

}  // namespace leeway
