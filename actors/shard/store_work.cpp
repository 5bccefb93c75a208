#include "actors/shard/store_work.hpp"

#include <utility>

#include "checkpoint/store.hpp"
#include "messages/envelope.hpp"

namespace leeway {

StoreWork::StoreWork(std::shared_ptr<const Job> job, ShardId shard, std::uint64_t checkpoint,
                     Iteration iteration, std::vector<WorkerId> residuals,
                     std::vector<BlockState> states)
    : job_(std::move(job)), shard_(shard), iteration_(iteration), states_(std::move(states)) {
  answer_.checkpoint = checkpoint;
  answer_.residuals = std::move(residuals);
  for (const BlockState& state : states_) {
    const auto arrays = static_cast<std::int64_t>(1 + state.slots.size());
    bytes_ += arrays * state.block->floats * static_cast<std::int64_t>(sizeof(float));
  }
}

void StoreWork::run(int) {
  std::vector<checkpoint::StoredBlock> blocks;
  for (const BlockState& state : states_) {
    auto& stored = blocks.emplace_back(
        checkpoint::StoredBlock{.block = state.block, .weights = state.weights.on_host()});
    for (std::size_t slot = 0; slot < state.slots.size(); ++slot)
      stored.slots.push_back(slot_floats(*job_, state, static_cast<int>(slot)).on_host());
    answer_.blocks.push_back({state.block->id, state.version, state.progress, state.samples});
  }
  auto files = job_->checkpoints->write_tensors(answer_.checkpoint, shard_, *job_->model, blocks);
  if (files) {
    answer_.files = std::move(*files);
  } else {
    answer_.error = files.error().text;
  }
  states_.clear();  // so that updates need no copies any more
}

Message StoreWork::outcome() const {
  return encode({.body = answer_});
}

void StoreWork::adopt(const Message& outcome) {
  auto envelope = decode(outcome);
  if (auto* answer = envelope ? std::get_if<msg::Stored>(&envelope->body) : nullptr)
    answer_ = std::move(*answer);
  else
    answer_.error = "the primary has reported no result";
  states_.clear();
}

}  // namespace leeway
