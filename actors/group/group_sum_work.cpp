#include "actors/group/group_sum_work.hpp"

#include <algorithm>

#include "core/check.hpp"

namespace leeway {

GroupSumWork::GroupSumWork(std::shared_ptr<const Job> job, std::shared_ptr<Executor> on,
                           std::vector<float> scales, GroupPart part)
    : job_(std::move(job)),
      on_(std::move(on)),
      scales_(std::move(scales)),
      part_(std::move(part)) {}

Cost GroupSumWork::cost(int) const {
  std::int64_t floats = 0;
  for (const BlockId block : part_.blocks) floats += job_->layout->block(block).floats;
  const auto workers = static_cast<std::int64_t>(part_.gradients.size());
  // The first pass reads one array, the others two; each writes one.
  std::int64_t arrays = workers > 1 ? 3 * workers - 1 : 0;
  if (job_->pushes_at_end()) ++arrays;  // for squares
  return {.bytes = floats * arrays * static_cast<std::int64_t>(sizeof(float))};
}

void GroupSumWork::run(int) {
  if (job_->cost_only) return;
  for (std::size_t i = 0; i < part_.blocks.size(); ++i) {
    const Block& block = job_->layout->block(part_.blocks[i]);
    if (part_.gradients.size() > 1) sum(i, block.floats);
    if (job_->pushes_at_end() && block.average == 0)
      squares_ += on_->sum_of_squares(part_.gradients.front()[i].as_floats(), block.floats);
  }
}

void GroupSumWork::sum(std::size_t block, std::int64_t floats) {
  Blob mean = on_->floats(floats);
  for (std::size_t worker = 0; worker < part_.gradients.size(); ++worker) {
    const Blob gradient = on_->fetch(std::exchange(part_.gradients[worker][block], Blob()));
    on_->begin_read(gradient);
    on_->accumulate(mean.mutable_floats(), gradient.as_floats(), scales_[worker], floats,
                    worker == 0 ? kernels::Write::assign : kernels::Write::add);
    on_->end_read(gradient);
  }
  on_->end_write(mean);
  part_.gradients.front()[block] = std::move(mean);
}

Blob GroupSumWork::take(BlockId block) {
  if (job_->cost_only) return job_->no_gradients[block.value()];
  const auto found = std::ranges::find(part_.blocks, block);
  LW_CHECK(found != part_.blocks.end(), block);
  return std::move(part_.gradients.front()[static_cast<std::size_t>(found - part_.blocks.begin())]);
}

}  // namespace leeway
