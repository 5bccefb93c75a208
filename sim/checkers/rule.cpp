#include "sim/checkers/rule.hpp"

namespace leeway::sim {

void RuleChecker::on_delivered(Instant, const Letter& letter) {
  if (letter.from().kind != RoleKind::worker || letter.to().kind != RoleKind::shard) return;
  const auto* pull = letter.as<msg::Pull>();
  if (!pull) return;
  own_clocks_[letter.to()][{WorkerId(letter.from().index), pull->iteration}] =
      pull->own_clock.value();
}

void RuleChecker::on_event(Instant, Address actor, const Event& event) {
  if (event.kind != Event::Kind::pull_answered) return;
  const std::vector<Address> actors = {actor, address_of(event.worker)};
  auto& own_clocks = own_clocks_[actor];
  const auto asked = own_clocks.find({event.worker, event.iteration});
  if (asked == own_clocks.end())
    violated(actors, "iteration ", event.iteration, " answered, which nobody had asked for");
  const std::int64_t own_clock = asked->second;
  own_clocks.erase(asked);
  const auto& shard = clocks_->at(actor);
  const std::int64_t bound = bounds_->at(actor, event.iteration);
  if (bound != kUnbounded && event.iteration.value() - shard.min_clock > bound)
    violated(actors, "iteration ", event.iteration, " answered at min_clock ", shard.min_clock,
             ", the bound is ", bound);
  const auto* entry = shard.live(event.worker);
  if (!entry) violated(actors, "iteration ", event.iteration, " answered to one who is out");
  if (entry->clock < own_clock)
    violated(actors, "iteration ", event.iteration, " answered at clock ", entry->clock,
             ", without all of the ", own_clock, " pushes that the worker had sent");
  if (const auto common = clocks_->common_clock(actor, event.worker); common < own_clock)
    violated(actors, "iteration ", event.iteration, " answered with ", common, " iterations of a ",
             "stage that it shares a block with, and not ", own_clock);
}

}  // namespace leeway::sim
