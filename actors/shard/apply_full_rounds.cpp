#include "actors/shard/apply_full_rounds.hpp"

#include <utility>

#include "core/mutant.hpp"

namespace leeway {

std::optional<WorkerId> ApplyFullRounds::take(Contribution push, Outbox& out) {
  const WorkerId worker = push.worker;
  const Iteration iteration = push.iteration;
  held_.add(std::move(push));
  if (!clocks_.advance_if_whole(worker)) return std::nullopt;
  out.emit(event::ClockMoved{worker, Clock(iteration.value() + 1)});
  return worker;
}

ApplyPolicy::Progress ApplyFullRounds::fence(WorkerId worker) {
  const Clock clock = clocks_.find(worker)->clock;
  held_.forget(worker, Iteration(clock.value()), sink_);
  return {clock, {}};
}

void ApplyFullRounds::apply_complete(Outbox& out) {
  bool early = planted(Mutant::round_applied_early);  // not const: see planted()
  held_.apply_below(early ? clocks_.max_clock() : clocks_.min_clock(), sink_, out);
}

}  // namespace leeway
