#pragma once
// ApplyFullRounds: a round is one update, once every live worker has pushed it (bsp).
#include "actors/shard/apply_policy.hpp"
#include "actors/shard/round_buffer.hpp"

namespace leeway {

class ApplyFullRounds final : public ApplyPolicy {
 public:
  ApplyFullRounds(ClockTable& clocks, PushSink& sink) : clocks_(clocks), sink_(sink) {}

  std::optional<WorkerId> take(Contribution push, Outbox& out) override;
  Progress fence(WorkerId worker) override;
  void apply_complete(Outbox& out) override;
  msg::RoundState save() const override { return {.held = held_.save()}; }
  void restore(const msg::RoundState& state) override { held_.restore(state.held); }
  /// If all workers that could complete a round have been removed, no clock passes the round. Its
  /// whole pushes are applied nevertheless.
  void finish(Outbox& out) override { held_.apply_below(clocks_.max_clock(), sink_, out); }

 private:
  ClockTable& clocks_;
  PushSink& sink_;
  RoundBuffer held_;
};

}  // namespace leeway
