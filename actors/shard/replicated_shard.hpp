#pragma once
// The roles of a shard's actors: the shard itself, or with standbys two replicas of it.
#include <memory>

#include "actors/job.hpp"
#include "actors/outbox.hpp"
#include "core/ids.hpp"

namespace leeway {

/// The shard, which is the primary if the plan has standbys.
std::shared_ptr<Role> make_shard(std::shared_ptr<const Job> job, ShardId shard);
/// Requires a plan with standbys. The standby of the first launch begins with the run; later ones
/// get their state from the primary.
std::shared_ptr<Role> make_standby(std::shared_ptr<const Job> job, ShardId shard,
                                   std::uint32_t launch = 1);

}  // namespace leeway
