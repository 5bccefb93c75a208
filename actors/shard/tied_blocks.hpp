#pragma once
// TiedBlocks: the blocks of a shard that several stages of a pipeline own, such as an embedding
// that the last stage borrows from the first.
//
// Each owner computes a gradient of a tied block. If the pipeline is emptied for each update, the
// gradients of one iteration are summed and applied as one update. A pull then waits for the pushes
// of all owners, so that all of them compute an iteration on the same weights. In a pipeline that
// is never emptied no bucket is tied: each gradient is one update. Under bsp, rounds sum the
// gradients.
#include <map>
#include <tuple>
#include <vector>

#include "actors/shard/clock_table.hpp"
#include "actors/shard/contribution.hpp"
#include "actors/stages.hpp"

namespace leeway {

class TiedBlocks {
 public:
  /// For a shard of `buckets` buckets.
  TiedBlocks(const Stages& stages, ShardId shard, std::uint32_t buckets, const ClockTable& clocks);

  bool is_tied(std::uint32_t shard_bucket) const;
  /// The other workers of its pipeline that own a tied block together with the worker.
  std::vector<WorkerId> siblings(WorkerId worker) const;
  /// The least clock of the worker and its siblings: the iterations that are whole in its blocks.
  Clock common_clock(WorkerId worker) const;

  /// Returns the contributions, in worker order, that make one update with this one; empty while a
  /// gradient of another owner is missing.
  std::vector<Contribution> gather(Contribution contribution);
  /// The worker has been fenced or removed. Returns the updates of its pipeline that have waited
  /// for a gradient that will not arrive.
  std::vector<std::vector<Contribution>> release(WorkerId worker);

  /// The gradients that wait.
  std::vector<Contribution> save() const;
  void restore(const std::vector<Contribution>& gradients);

 private:
  bool is_complete(const std::vector<Contribution>& gradients) const;
  std::vector<Contribution>& waiting_with(const Contribution& gradient) {
    return waiting_[{stages_.lead_of(gradient.worker), gradient.iteration, gradient.shard_bucket}];
  }

  const Stages& stages_;
  ShardId shard_;
  const ClockTable& clocks_;
  std::vector<std::vector<std::uint32_t>> siblings_;  // by stage
  /// Incomplete updates by pipeline (its lead), iteration and bucket. Only one iteration of a
  /// pipeline waits: a push for the next one is refused meanwhile.
  std::map<std::tuple<WorkerId, Iteration, std::uint32_t>, std::vector<Contribution>> waiting_;
};

}  // namespace leeway
