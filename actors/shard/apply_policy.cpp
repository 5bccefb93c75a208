#include "actors/shard/apply_policy.hpp"

#include "actors/shard/apply_first_pushes.hpp"
#include "actors/shard/apply_full_rounds.hpp"
#include "actors/shard/apply_on_arrival.hpp"

namespace leeway {

std::unique_ptr<ApplyPolicy> make_apply_policy(const Consistency& consistency, ShardId shard,
                                               TimerToken timer, ClockTable& clocks,
                                               TiedBlocks& tied, PushSink& sink,
                                               Channel& scheduler) {
  if (!consistency.by_rounds()) return std::make_unique<ApplyOnArrival>(clocks, tied, sink);
  const RoundSize size = consistency.round_size();
  if (!size.drops()) return std::make_unique<ApplyFullRounds>(clocks, sink);
  const bool leads = shard == ShardId(0);
  return std::make_unique<ApplyFirstPushes>(size, consistency.grace(), leads, timer, clocks, sink,
                                            scheduler);
}

}  // namespace leeway
