#pragma once
// SnapshotChecker: property 5, a cut is the sum of all pushes below it, and the final weights are
// the sum of all.
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "actors/job.hpp"
#include "sim/checkers/checker.hpp"
#include "sim/checkers/halves.hpp"

namespace leeway::sim {

/// It counts the updates of each block, and for plain SGD at a constant rate adds the gradients up
/// again. Snapshots, which asp takes, are no cuts.
class SnapshotChecker final : public Checker {
 public:
  explicit SnapshotChecker(std::shared_ptr<const Job> job);
  void on_event(Instant, Address actor, const Event& event) override;
  void on_delivered(Instant, const Letter& letter) override;

 private:
  using PartIndex = std::uint32_t;   // of a worker
  using GroupIndex = std::uint32_t;  // of a shard
  struct State {
    std::map<GroupIndex, std::int64_t> updates;
    std::map<GroupIndex, Iteration> latest_round;    // by rounds: the last one counted
    std::map<BlockId, std::vector<double>> weights;  // empty: only counted
  };
  struct Shard {
    State live;
    Halves halves;
    std::map<Iteration, State> forks;  // by the iteration proposed
    Iteration beyond;                  // largest that was applied, plus one
    /// Pushes that came and are not applied yet, by worker, part, incarnation and iteration.
    std::map<std::tuple<WorkerId, PartIndex, Incarnation, Iteration>, msg::Push> pushed;
  };
  Shard& at(Address address);
  static void follow(Halves& halves, const Event& event);
  State initial(ShardId shard) const;
  /// Null where the worker has no such part at the shard.
  const std::uint32_t* group_of(Address shard, WorkerId worker, PartIndex part) const;
  /// `begins_update`: it is not summed into one that was counted before.
  void add(State& state, GroupIndex group, const msg::Push& push, bool begins_update) const;
  void compare(Address address, const State& expected, const msg::SnapshotState& found) const;
  void compare_weights(Address address, const Block& block, const std::vector<double>& expected,
                       std::int64_t updates, const msg::BlockData& found) const;

  std::shared_ptr<const Job> job_;
  bool piped_;
  bool adds_;  // gradients, not only updates
  std::map<Address, Shard> shards_;
};

}  // namespace leeway::sim
