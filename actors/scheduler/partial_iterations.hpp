#pragma once
// PartialIterations: what the shards have of a member's iterations that are pushed in part.
//
// When a pipeline has ended, each shard answers for each of its stages how many iterations it has
// whole, and which buckets of the next iteration. From that follows which iterations all shards
// have, and which buckets of the others need no second gradient: the new leaseholder of the samples
// pushes these buckets as empty.
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/ids.hpp"
#include "messages/worker_scheduler.hpp"

namespace leeway {

using AppliedBuckets = std::vector<msg::AppliedBucket>;  // ascending, without repeats

/// The buckets in one of the two lists, or in both.
AppliedBuckets united(const AppliedBuckets& a, const AppliedBuckets& b);

/// Without an answer, nothing has been pushed, and no list is complete.
class PartialIterations {
 public:
  /// A shard's answer for a stage: it has the iterations below `clock` whole, and of the next one
  /// the buckets in `applied`, ascending. The stage has `buckets` buckets on that shard; numbers
  /// beyond them are ignored. False, without effect, if that shard has answered for that stage.
  bool add(std::uint32_t stage, ShardId shard, Clock clock,
           const std::vector<std::uint32_t>& applied, std::uint32_t buckets);

  /// All shards have the iterations below it, of all stages.
  Clock whole() const;
  /// No shard has anything of this iteration or of a later one.
  Iteration untouched() const;
  /// The number of iterations between the two, which are partial.
  std::int64_t count() const { return untouched().value() - whole().value(); }

  /// The buckets of an iteration that shards have applied, or will.
  AppliedBuckets applied(Iteration iteration) const;
  /// True for a list of all buckets of all stages.
  bool complete(const AppliedBuckets& list) const {
    return buckets_ > 0 && list.size() == buckets_;
  }

 private:
  struct AtShard {
    Clock clock;
    std::vector<std::uint32_t> applied;
    std::uint32_t buckets = 0;
  };
  std::map<std::pair<std::uint16_t, std::uint16_t>, AtShard> at_;  // by stage and shard
  std::size_t buckets_ = 0;                                        // of all of these
};

}  // namespace leeway
