#include "actors/shard/updates.hpp"

#include <utility>

#include "core/mutant.hpp"

namespace leeway {

void Updates::apply(std::vector<Contribution> contributions, Outbox& out) {
  const std::uint32_t bucket = contributions.front().shard_bucket;
  const Iteration round = contributions.front().iteration;
  ParameterBucket::Update update;
  update.measured = norms_ != nullptr;
  update.also_shadow = snapshots_.fork_before(contributions.front());
  const bool is_skipped = skips(contributions);
  for (auto& contribution : contributions) {
    if (!contribution.is_empty() && !is_skipped) {
      update.contributions.push_back(std::move(contribution));
      continue;
    }
    buckets_.forget(bucket, contribution.worker, contribution.iteration);
    if (is_skipped && !contribution.is_empty()) snapshots_.dropped(contribution);
    acknowledgements_.applied(contribution, out, is_skipped);
  }
  if (!update.contributions.empty()) {
    if (norms_) norms_->expect(round);
    buckets_.enqueue(bucket, std::move(update));
  }
  buckets_.run(bucket, out);
}

bool Updates::skips(const std::vector<Contribution>& contributions) {
  bool any = false;
  for (const Contribution& one : contributions)
    if (one.overflowed) {
      any = true;
      loss_scale_->overflowed(one.worker, one.iteration, one.loss_scale);
    }
  return any && !(contributions.size() > 1 && planted(Mutant::overflow_left_out));
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
