#include "actors/shard/apply_on_arrival.hpp"

#include <utility>

#include "core/mutant.hpp"

namespace leeway {

std::optional<WorkerId> ApplyOnArrival::take(Contribution push, Outbox& out) {
  const WorkerId worker = push.worker;
  const Iteration iteration = push.iteration;
  const bool moved = clocks_.advance_if_whole(worker);
  auto update = tied_.gather(std::move(push));
  if (!update.empty()) sink_.apply(std::move(update), out);
  if (!moved) return std::nullopt;
  out.emit(event::ClockMoved{worker, Clock(iteration.value() + 1)});
  return worker;
}

ApplyPolicy::Progress ApplyOnArrival::fence(WorkerId worker) {
  const auto& participant = *clocks_.find(worker);
  Progress progress{participant.clock, {}};
  for (std::uint32_t bucket = 0; bucket < participant.accepted.size(); ++bucket)
    if (participant.accepted[bucket]) progress.applied.push_back(bucket);
  return progress;
}

std::optional<WorkerId> ApplyOnArrival::release(WorkerId worker, Outbox& out) {
  for (auto& update : tied_.release(worker)) {
    if (planted(Mutant::tied_gradient_lost)) {
      for (const Contribution& lost : update) sink_.forget(lost);
    } else {
      sink_.apply(std::move(update), out);
    }
  }
  return std::nullopt;
}

}  // namespace leeway
