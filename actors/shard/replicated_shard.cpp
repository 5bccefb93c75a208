#include "actors/shard/replicated_shard.hpp"

#include <utility>

#include "actors/replica/replica.hpp"
#include "actors/shard/shard.hpp"

namespace leeway {
namespace {

std::shared_ptr<Role> make_replica(std::shared_ptr<const Job> job, ShardId shard,
                                   Replica::Standing standing, std::uint32_t launch = 1) {
  const auto first = standing == Replica::Standing::empty ? FirstState::zeros : FirstState::of_run;
  const std::shared_ptr<ReplicaGauge> gauge(job->replica_gauges,
                                            &job->replica_gauges->at(shard.value()));
  auto role = std::make_shared<Shard>(std::move(job), shard, first);
  return std::make_shared<Replica>(
      std::move(role), ReplicaPair{address_of(shard), standby_of(shard)}, standing, launch, gauge);
}

}  // namespace

std::shared_ptr<Role> make_shard(std::shared_ptr<const Job> job, ShardId shard) {
  if (job->plan.replicas > 1)
    return make_replica(std::move(job), shard, Replica::Standing::primary);
  return std::make_shared<Shard>(std::move(job), shard);
}

std::shared_ptr<Role> make_standby(std::shared_ptr<const Job> job, ShardId shard,
                                   std::uint32_t launch) {
  const auto standing = launch == 1 ? Replica::Standing::standby : Replica::Standing::empty;
  return make_replica(std::move(job), shard, standing, launch);
}

}  // namespace leeway
