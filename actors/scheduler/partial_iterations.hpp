#pragma once
// PartialIterations: the buckets that shards have of a member's partially pushed iterations.
//
// When a pipeline has ended, each shard reports for each stage the number of its whole iterations,
// and the buckets of the next iteration. The answers determine the iterations that all shards have.
// For the others, they determine the buckets that need no second gradient: the new leaseholder of
// the samples sends empty pushes for these buckets.
#include <map>
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
  /// Adds a shard's answer for a stage: it has all iterations below `clock`, and the buckets in
  /// `applied`, ascending, of the next one. The stage has `buckets` buckets on that shard; numbers
  /// beyond them are ignored. False, without effect, if that shard has answered for that stage.
  bool add(std::uint32_t stage, ShardId shard, Clock clock,
           const std::vector<std::uint32_t>& applied, std::uint32_t buckets);

  /// All shards have the iterations below this clock, of all stages.
  Clock whole() const;
  /// The first iteration of which no shard has a bucket.
  Iteration untouched() const;
  /// The number of partial iterations: those between whole() and untouched().
  std::int64_t count() const { return untouched().value() - whole().value(); }

  /// The buckets of an iteration that shards have applied or will apply.
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
