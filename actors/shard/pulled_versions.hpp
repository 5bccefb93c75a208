#pragma once
// PulledVersions: what a shard keeps of the pulls whose pushes are still to come, for one block.
//
// A delay policy (policies/delay) needs the progress at the pull of a push, and sometimes the
// weights. Both are kept for each iteration that a worker has pulled and not pushed, not by age: a
// staleness bound does not matter. Weights are references, which make the next update write to a
// new buffer.
#include <cstdint>
#include <map>
#include <vector>

#include "actors/shard/block_state.hpp"
#include "messages/shard_state.hpp"

namespace leeway {

class PulledVersions {
 public:
  struct Pulled {
    double progress = 0;  // of the block, at the pull
    Blob weights;         // null unless they are kept
  };

  /// `keeps_weights`: not only the progress.
  explicit PulledVersions(bool keeps_weights) : keeps_weights_(keeps_weights) {}

  /// The worker has pulled the present state for this iteration, perhaps again.
  void record(WorkerId worker, Iteration iteration, const BlockState& state);
  /// Null if no open pull of the worker has this version.
  const Pulled* find(WorkerId worker, Version version) const;
  /// Closes the worker's pulls for iterations up to this one.
  void forget(WorkerId worker, Iteration upto);

  /// Versions of the weights that are kept besides the present one.
  std::size_t old_versions(const BlockState& present) const {
    return keeps_weights_ ? versions_.size() - versions_.count(present.version) : 0;
  }

  std::vector<msg::PulledVersion> save(const Block& block) const;
  void restore(const std::vector<msg::PulledVersion>& state, Executor& on);

 private:
  struct Kept {
    Pulled pulled;
    std::uint32_t pulls = 0;
  };
  using Pulls = std::map<Iteration, Version>;

  void add(WorkerId worker, Iteration iteration, Version version, const Pulled& pulled);
  Pulls::iterator close(Pulls& pulls, Pulls::iterator pull);

  bool keeps_weights_;
  std::map<Version, Kept> versions_;
  std::map<WorkerId, Pulls> open_;
};

}  // namespace leeway
