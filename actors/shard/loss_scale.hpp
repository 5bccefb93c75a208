#pragma once
// LossScale: the factor of losses under fp16, in which small gradients would be 0 without it
// (Micikevicius et al., "Mixed Precision Training", ICLR 2018, section 3.2).
//
// It starts at the plan's value, is halved after an overflow, whose update is skipped, and doubles
// after 2,000 rounds without one, as PyTorch's GradScaler does. It is a power of two, so gradients
// that are multiplied and divided by it keep their bits.
//
// Under bsp, the scale of an iteration depends only on the rounds before it, so all shards agree on
// it. Without rounds, an overflow counts at once, and the pushes of a round's weight are a round.
#include <cstdint>
#include <deque>
#include <map>

#include "core/ids.hpp"
#include "core/limits.hpp"
#include "messages/shard_state.hpp"

namespace leeway {

class LossScale {
 public:
  static constexpr float kMost = limits::kMostLossScale;
  static constexpr std::int64_t kGrowthInterval = 2000;  // rounds

  /// The scale from a round on.
  using State = msg::LossScaleState::Step;

  /// `by_rounds`: a round is applied before the pulls of the next one are answered.
  LossScale(bool by_rounds, State first);

  /// An update is skipped, because this push has overflowed with this scale. May be repeated for
  /// other buckets.
  void overflowed(WorkerId worker, Iteration iteration, float scale);
  /// A push of this share of a round has been accepted.
  void pushed(double share) { progress_ += share; }
  /// The scale of an iteration, which a worker pulls now.
  float at(Iteration iteration) { return state_at(iteration).scale; }
  /// The same, with the round from which it holds. Under bsp, also of the last iterations.
  State state_at(Iteration iteration);
  /// Updates that were skipped: rounds, or without rounds iterations of a worker.
  std::uint64_t skipped() const { return steps_.back().skipped + pending_.size(); }

  msg::LossScaleState save() const;
  void restore(const msg::LossScaleState& state);

 private:
  static constexpr std::size_t kKept = 64;  // steps

  void add(const State& step);
  /// Doubles the scale if the round is far enough behind its last change.
  void grow(Iteration round);
  void halve(Iteration since, float scale);
  Iteration round_of(Iteration iteration) const {
    return by_rounds_ ? iteration : Iteration(static_cast<std::int64_t>(progress_));
  }

  const bool by_rounds_;
  double progress_ = 0;  // rounds
  std::deque<State> steps_;
  std::map<Iteration, float> pending_;     // by_rounds: smallest scale of overflows, not yet halved
  std::map<WorkerId, Iteration> counted_;  // without rounds: the last overflow of each worker
};

}  // namespace leeway
