#pragma once
// GroupLead: the first worker of a host group. The other workers, its followers, compute a part of
// each iteration's samples.
//
// It leases the samples of an iteration and pulls its weights, as a worker does, and divides the
// samples among the workers of the group. It sums the gradients of each part of the computation
// when all workers have finished it, and pushes the sums. To the shards and the scheduler's lease
// book, the group is one worker with a larger batch.
//
// Before the group is idle or stops, the lead sends GroupEnd. A worker of the group that dies, or a
// broken link between two of them, ends the group's session: all join again.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/group/group_gradients.hpp"
#include "actors/group/group_sum_work.hpp"
#include "actors/worker/compute_work.hpp"
#include "actors/worker/whole_worker.hpp"

namespace leeway {

class GroupLead final : public WholeWorker {
 public:
  GroupLead(std::shared_ptr<const Job> job, WorkerId id, std::uint32_t launch = 1);

  void warm_up() override;
  void on_part(Work& work, int part, Outbox& out) override;
  void on_link(Address peer, Outbox& out) override;

 private:
  /// The iteration that the group computes.
  struct Iterating {
    std::shared_ptr<ComputeWork> own;  // null when it is finished
    GroupGradients gradients;
    std::vector<float> scales;             // by worker with samples: see scales_of()
    std::vector<std::vector<int>> layers;  // by part
    std::vector<Version> versions;         // of the weights, by block
    std::size_t pushed = 0;                // parts
    std::shared_ptr<GroupSumWork> sum;     // of the next part to push; null: it is not complete
  };

  void advance(Outbox& out) override;
  void forget() override;
  bool is_iterating() const override { return iterating_.has_value(); }
  bool take(Address from, Envelope& envelope, Outbox& out) override;
  std::int64_t samples_to_compute(const LeasedIteration& leased) const override;

  void handle(Address from, msg::GroupGradient& gradient, Outbox& out);
  void handle(Address from, const msg::GroupDiverged& diverged, Outbox& out);
  bool is_follower(Address actor) const;
  /// The place of a follower in the group.
  std::uint32_t index_of(Address follower) const { return follower.index - id_.value(); }
  /// The number of workers that have samples in an iteration of this many samples.
  std::uint32_t workers_for(std::int64_t samples) const;
  /// The samples of worker `index` of the group.
  LeasedIteration share_of(const LeasedIteration& leased, std::uint32_t index) const;
  void start_iteration(Outbox& out);
  /// By worker: the weight of its mean gradient in that of the group.
  std::vector<float> scales_of(const LeasedIteration& leased) const;
  void send_shares(const LeasedIteration& leased, const PulledWeights& weights, Outbox& out);
  void computed_part(int part, Outbox& out);
  /// Gradients of a worker of the group have arrived.
  void arrived(std::uint32_t index, Outbox& out);
  /// Gives up the iteration after a loss that is not finite.
  void give_up(double loss, const std::string& layer, Outbox& out);
  /// The lead waited for the gradients of another worker of the group.
  void count_wait(WorkerId for_worker, Duration time);
  /// Sums the next part, if all workers have finished it and no other sum runs.
  void sum_next(Outbox& out);
  void push(GroupSumWork& sum, Outbox& out);
  void finish_iteration(Outbox& out);
  void end_group(Outbox& out);

  std::shared_ptr<Executor> sums_on_;  // null if the job counts costs
  std::optional<Iterating> iterating_;
};

}  // namespace leeway
