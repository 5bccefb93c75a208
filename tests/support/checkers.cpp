#include "tests/support/checkers.hpp"

#include <algorithm>
#include <cmath>

#include "core/text.hpp"

namespace leeway::test {

// ---- the rule ----

void RuleChecker::move(ShardView& view, WorkerId worker, std::int64_t clock) {
  auto& greatest = view.greatest[worker];
  LW_CHECK(clock >= greatest, "clock decreased", worker, clock, greatest);
  greatest = clock;
  view.live[worker] = clock;
}

void RuleChecker::on_event(Address actor, const Event& event) {
  if (actor.kind != RoleKind::shard) return;
  auto& view = shards_[actor];
  if (event.kind == Event::Kind::admitted) move(view, event.worker, event.iteration.value());
  if (event.kind == Event::Kind::clock_moved) move(view, event.worker, event.value);
  if (event.kind == Event::Kind::removed) view.live.erase(event.worker);
  if (!view.live.empty()) {
    std::int64_t least = view.live.begin()->second;
    for (const auto& [worker, clock] : view.live) least = std::min(least, clock);
    LW_CHECK(least >= view.min_clock, "min_clock decreased", least, view.min_clock);
    view.min_clock = least;
  }
  if (event.kind != Event::Kind::pull_answered) return;
  ++answered_;
  const std::int64_t bound = job_.consistency->bound(event.iteration);
  if (bound != kUnbounded)
    LW_CHECK(event.iteration.value() - view.min_clock <= bound, "pull answered against the bound",
             actor, event.worker, event.iteration, view.min_clock);
  const std::int64_t own = view.own_clock.at({event.worker, event.iteration});
  LW_CHECK(view.live.at(event.worker) >= own, "pull answered without the worker's own pushes",
           event.worker, event.iteration, own);
}

void RuleChecker::on_delivered(Address from, Address to, const Envelope& envelope) {
  if (const auto* pull = std::get_if<msg::Pull>(&envelope.body))
    shards_[to].own_clock[{WorkerId(from.index), pull->iteration}] = pull->own_clock.value();
}

// ---- exactly once ----

void ExactlyOnceChecker::on_event(Address actor, const Event& event) {
  if (event.kind != Event::Kind::part_applied) return;
  const auto part = static_cast<std::uint32_t>(event.value);
  const bool fresh =
      applied_.insert({actor, event.worker, event.incarnation, event.iteration, part}).second;
  LW_CHECK(fresh, "part applied twice", actor, event.worker, event.incarnation, event.iteration,
           part);
}

void ExactlyOnceChecker::on_delivered(Address from, Address to, const Envelope& envelope) {
  const auto* pushed = std::get_if<msg::Pushed>(&envelope.body);
  if (!pushed) return;
  LW_CHECK(applied_.contains(
               {from, WorkerId(to.index), envelope.incarnation, pushed->iteration, pushed->part}),
           "part acknowledged but not applied", from, to, pushed->iteration, pushed->part);
}

// ---- parked pulls ----

void ParkedChecker::on_event(Address actor, const Event& event) {
  if (event.kind == Event::Kind::pull_parked)
    parked_[event.worker].insert({actor, event.iteration});
  if (event.kind == Event::Kind::pull_answered)
    parked_[event.worker].erase({actor, event.iteration});
}

void ParkedChecker::on_sent(Address from, Address to, const Envelope& envelope) {
  if (const auto* refused = std::get_if<msg::Refused>(&envelope.body))
    parked_[WorkerId(to.index)].erase({from, refused->iteration});
  // A worker that joins anew, or has stopped, waits for nothing.
  if (std::holds_alternative<msg::Join>(envelope.body) ||
      std::holds_alternative<msg::Stopped>(envelope.body))
    parked_.erase(WorkerId(from.index));
}

void ParkedChecker::check_end(const TestHost& host) const {
  for (const auto& [worker, pulls] : parked_)
    if (host.lives(address_of(worker)))
      for (const auto& [shard, iteration] : pulls)
        LW_CHECK(false, "pull parked for ever", worker, shard, iteration);
}

// ---- samples ----

void SampleChecker::on_event(Address actor, const Event& event) {
  if (event.kind == Event::Kind::part_applied)
    applied_[{actor, event.value}] += static_cast<std::uint64_t>(event.value2);
  if (event.kind != Event::Kind::trained) return;
  auto& epoch = trained_[event.epoch];
  epoch.resize(static_cast<std::size_t>(job_.data.train->size()));
  for (std::int64_t i = event.value; i < event.value2; ++i)
    LW_CHECK(++epoch[static_cast<std::size_t>(i)] == 1, "sample trained twice", event.epoch, i);
}

void SampleChecker::check_end(const RunTotals& totals) const {
  const auto epochs = static_cast<std::size_t>(job_.plan.stop.epochs);
  LW_CHECK(trained_.size() == epochs, trained_.size(), epochs);
  std::uint64_t samples = 0;
  for (const auto& [epoch, counts] : trained_) {
    for (std::size_t i = 0; i < counts.size(); ++i)
      LW_CHECK(counts[i] == 1, "sample not trained", epoch, i);
    samples += counts.size();
  }
  LW_CHECK(totals.end.samples_trained == samples, totals.end.samples_trained, samples);
  const std::uint64_t extra = totals.end.torn_pushes * job_.plan.batch;
  for (const auto& [shard_part, count] : applied_)
    LW_CHECK(count >= samples && count <= samples + extra, shard_part.first, shard_part.second,
             count, samples, extra);
}

// ---- cuts ----

void CutChecker::on_sent(Address from, Address to, const Envelope& envelope) {
  if (const auto* push = std::get_if<msg::Push>(&envelope.body))
    pushed_[{to, WorkerId(from.index), push->iteration, push->part}] = *push;
}

void CutChecker::on_event(Address actor, const Event& event) {
  if (event.kind != Event::Kind::part_applied) return;
  const auto& push =
      pushed_.at({actor, event.worker, event.iteration, static_cast<std::uint32_t>(event.value)});
  applied_[actor].push_back({event.iteration, push.blocks, push.weight});
}

void CutChecker::on_delivered(Address from, Address, const Envelope& envelope) {
  const auto* state = std::get_if<msg::CutState>(&envelope.body);
  if (!state) return;
  ++cuts_;
  for (const auto& block : state->blocks) {
    const Block& layout = job_.layout->block(block.block);
    std::vector<double> expected(static_cast<std::size_t>(layout.floats));
    for (const auto& slice : layout.slices) {
      const auto& shape =
          job_.model->parameters()[static_cast<std::size_t>(slice.parameter)].spec.shape;
      std::vector<float> whole(static_cast<std::size_t>(shape.count()));
      job_.model->initialize(slice.parameter, job_.plan.seed, whole.data());
      std::copy_n(whole.data() + slice.first_row * shape.row_count(),
                  slice.rows * shape.row_count(), expected.data() + slice.offset);
    }
    for (const auto& push : applied_[from]) {
      if (!state->final && push.iteration >= state->iteration) continue;
      for (const auto& gradient : push.blocks)
        if (gradient.block == block.block)
          for (std::size_t i = 0; i < expected.size(); ++i)
            expected[i] -=
                job_.plan.optimizer.learning_rate * push.weight * gradient.data.as_floats()[i];
    }
    for (std::size_t i = 0; i < expected.size(); ++i)
      LW_CHECK(
          std::abs(block.data.as_floats()[i] - expected[i]) < 1e-4 * (1 + std::abs(expected[i])),
          "cut differs from the sum of its pushes", from, state->iteration, state->final,
          block.block, i, block.data.as_floats()[i], expected[i]);
  }
}

}  // namespace leeway::test
