#pragma once
// StoreWork: writes a shard's part of a checkpoint to the disk.
#include <memory>
#include <vector>

#include "actors/job.hpp"
#include "actors/outbox.hpp"
#include "actors/shard/block_state.hpp"
#include "messages/scheduler_shard.hpp"

namespace leeway {

class StoreWork final : public Work {
 public:
  /// Requires job->checkpoints. `iteration`: the least one of the snapshot's. `residuals`: of these
  /// workers, it lacks them. The states share their memory with the shard, which does not write to
  /// shared memory.
  StoreWork(std::shared_ptr<const Job> job, ShardId shard, std::uint64_t checkpoint,
            Iteration iteration, std::vector<WorkerId> residuals, std::vector<BlockState> states);

  int parts() const override { return 1; }
  Cost cost(int) const override { return {.bytes = bytes_}; }
  bool waits_for_disk() const override { return true; }
  void run(int) override;
  Message outcome() const override;
  void adopt(const Message& outcome) override;

  Iteration iteration() const { return iteration_; }
  /// The answer to the scheduler, after run() or adopt().
  msg::Stored take_answer() { return std::move(answer_); }

 private:
  std::shared_ptr<const Job> job_;
  ShardId shard_;
  Iteration iteration_;
  std::vector<BlockState> states_;
  std::int64_t bytes_ = 0;
  msg::Stored answer_;
};

}  // namespace leeway
