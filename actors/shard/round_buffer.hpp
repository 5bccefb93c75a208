#pragma once
// RoundBuffer: pushes that wait for their round, and the update of a complete round.
#include <map>
#include <vector>

#include "actors/shard/push_sink.hpp"

namespace leeway {

class RoundBuffer {
 public:
  void add(Contribution push) { rounds_[push.iteration].push_back(std::move(push)); }
  /// Removes and returns the pushes of a round, in order of arrival.
  std::vector<Contribution> take(Iteration round);
  /// Applies all rounds below `clock`, one after the other.
  void apply_below(Clock clock, PushSink& sink, Outbox& out);
  /// Discards the worker's pushes of one round.
  void forget(WorkerId worker, Iteration round, PushSink& sink);

  /// All pushes, by round.
  std::vector<Contribution> save() const;
  void restore(const std::vector<Contribution>& pushes);

 private:
  std::map<Iteration, std::vector<Contribution>> rounds_;
};

/// Applies the pushes of one round: to each bucket one update, which sums them in worker order.
void apply_round(Iteration round, std::vector<Contribution> pushes, PushSink& sink, Outbox& out);

}  // namespace leeway
