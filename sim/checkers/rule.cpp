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
  const auto* answered = event.as<event::PullAnswered>();
  if (!answered) return;
  const WorkerId worker = answered->worker;
  const Iteration iteration = answered->iteration;
  const std::vector<Address> actors = {actor, address_of(worker)};
  auto& own_clocks = own_clocks_[actor];
  const auto pull = own_clocks.find({worker, iteration});
  if (pull == own_clocks.end())
    violated(actors, "iteration ", iteration, " answered without a pull");
  const std::int64_t own_clock = pull->second;
  own_clocks.erase(pull);
  const auto& shard = clocks_->at(actor);
  const std::int64_t bound = bounds_->at(actor, iteration);
  if (bound != kUnbounded && iteration.value() - shard.min_clock > bound)
    violated(actors, "iteration ", iteration, " answered at min_clock ", shard.min_clock,
             ", the bound is ", bound);
  const auto* entry = shard.live(worker);
  if (!entry)
    violated(actors, "iteration ", iteration, " answered to a worker that is not admitted");
  if (entry->clock < own_clock)
    violated(actors, "iteration ", iteration, " answered at clock ", entry->clock,
             ", without all of the ", own_clock, " pushes of the worker");
  if (const auto common = clocks_->common_clock(actor, worker); common < own_clock)
    violated(actors, "iteration ", iteration, " answered with ", common,
             " iterations of a stage that shares a block, not ", own_clock);
}

}  // namespace leeway::sim
