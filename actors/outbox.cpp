#include "actors/outbox.hpp"

namespace leeway {

bool is_small(const Work& work) {
  constexpr std::int64_t kBytes = 16 << 20, kFlops = 8 << 20;
  if (work.parts() != 1) return false;
  const Cost cost = work.cost(0);
  return cost.bytes <= kBytes && cost.flops <= kFlops;
}

std::string_view name_of(Event::Kind kind) {
  switch (kind) {
    case Event::Kind::pull_answered:
      return "pull_answered";
    case Event::Kind::pull_parked:
      return "pull_parked";
    case Event::Kind::bucket_applied:
      return "bucket_applied";
    case Event::Kind::bucket_repeated:
      return "bucket_repeated";
    case Event::Kind::clock_moved:
      return "clock_moved";
    case Event::Kind::push_dropped:
      return "push_dropped";
    case Event::Kind::admitted:
      return "admitted";
    case Event::Kind::fenced:
      return "fenced";
    case Event::Kind::removed:
      return "removed";
    case Event::Kind::snapshot_taken:
      return "snapshot_taken";
    case Event::Kind::refused:
      return "refused";
    case Event::Kind::malformed:
      return "malformed";
    case Event::Kind::lease_granted:
      return "lease_granted";
    case Event::Kind::lease_returned:
      return "lease_returned";
    case Event::Kind::trained:
      return "trained";
    case Event::Kind::partial:
      return "partial";
    case Event::Kind::evicted:
      return "evicted";
    case Event::Kind::step_started:
      return "step_started";
    case Event::Kind::step_finished:
      return "step_finished";
    case Event::Kind::bound_changed:
      return "bound_changed";
    case Event::Kind::left:
      return "left";
    case Event::Kind::forward:
      return "forward";
    case Event::Kind::backward_inputs:
      return "backward for the inputs";
    case Event::Kind::backward_weights:
      return "backward for the weights";
  }
  return "?";
}

}  // namespace leeway
