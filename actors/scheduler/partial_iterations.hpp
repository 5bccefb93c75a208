#pragma once
// PartialIterations: what the shards have of iterations that were pushed and not finished.
//
// When a pipeline has ended, each shard says of each of its stages how many iterations it has
// whole, and which parts of the next. From that follows which iterations all have, and which parts
// of the others need not be trained again: whoever is leased their samples pushes those as empty.
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/ids.hpp"
#include "messages/worker_scheduler.hpp"

namespace leeway {

using AppliedBuckets = std::vector<msg::AppliedBucket>;  // ascending, none twice

/// Those in one of the two.
AppliedBuckets united(const AppliedBuckets& a, const AppliedBuckets& b);

/// Without anything added, nothing has been pushed, and no list is complete.
class PartialIterations {
 public:
  /// The shard has the iterations of the stage below `clock` whole, and `applied`, ascending, of
  /// the parts of the next, of which the stage owes it `parts`. What cannot be one of these is
  /// ignored. False, and nothing is changed, when the two were added before.
  bool add(std::uint32_t stage, ShardId shard, Clock clock,
           const std::vector<std::uint32_t>& applied, std::uint32_t parts);

  /// All shards have the iterations below it, of all stages.
  Clock whole() const;
  /// No shard has anything of it, or of a later one.
  Iteration untouched() const;
  /// Iterations between the two: those that only some have, or have in part.
  std::int64_t count() const { return untouched().value() - whole().value(); }

  /// The parts of an iteration that shards have applied, or will.
  AppliedBuckets applied(Iteration iteration) const;
  /// True for a list of all the parts that there are.
  bool complete(const AppliedBuckets& list) const { return parts_ > 0 && list.size() == parts_; }

 private:
  struct AtShard {
    Clock clock;
    std::vector<std::uint32_t> applied;
    std::uint32_t parts = 0;
  };
  std::map<std::pair<std::uint16_t, std::uint16_t>, AtShard> at_;  // by stage and shard
  std::size_t parts_ = 0;                                          // of all of these
};

}  // namespace leeway
