#include "actors/shard/updates.hpp"

#include <utility>

namespace leeway {

void Updates::apply(std::vector<Contribution> contributions, Outbox& out) {
  const std::uint32_t bucket = contributions.front().shard_bucket;
  const Iteration round = contributions.front().iteration;
  ParameterBucket::Update update;
  update.measured = norms_ != nullptr;
  update.also_shadow = snapshots_.fork_before(contributions.front());
  for (auto& contribution : contributions) {
    if (contribution.is_empty()) {
      buckets_.forget(bucket, contribution.worker, contribution.iteration);
      acknowledgements_.applied(contribution, out);
    } else {
      update.contributions.push_back(std::move(contribution));
    }
  }
  if (!update.contributions.empty()) {
    if (norms_) norms_->expect(round);
    buckets_.enqueue(bucket, std::move(update));
  }
  buckets_.run(bucket, out);
}

void Updates::end_round(Iteration round, Outbox& out) {
  if (norms_) norms_->close(round, out);
}

void Updates::drop(const Contribution& push, Outbox& out) {
  acknowledgements_.forget(push);
  acknowledgements_.dropped(push, out);
  snapshots_.dropped(push);
}

}  // namespace leeway
