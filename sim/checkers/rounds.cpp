#include "sim/checkers/rounds.hpp"

#include <algorithm>

#include "plan/local_steps.hpp"

namespace leeway::sim {

RoundChecker::RoundChecker(std::shared_ptr<const Job> job)
    : Checker("every shard sums the pushes that a round was closed with (3)", Damage::updates),
      job_(std::move(job)),
      drops_(job_->consistency->round_size().drops()),
      most_dropped_(job_->consistency->round_size().most_dropped(job_->plan.workers)) {}

void RoundChecker::on_event(Instant, Address actor, const Event& event) {
  if (!drops_) return;
  if (const auto* partial = event.as<event::PartialPush>()) {
    check_partial(*partial);
  } else if (const auto* started = event.as<event::StepStarted>()) {
    check_started(actor, *started);
  } else if (const auto* fenced = event.as<event::Fenced>()) {
    shards_[actor].fenced[fenced->worker] = false;
  } else if (const auto* admitted = event.as<event::Admitted>()) {
    auto& fenced_workers = shards_[actor].fenced;
    const auto known = fenced_workers.find(admitted->worker);
    if (known != fenced_workers.end()) known->second = true;
  } else if (const auto* applied = event.as<event::BucketApplied>()) {
    check_applied(actor, *applied);
  } else if (const auto* dropped = event.as<event::PushDropped>()) {
    check_dropped(actor, *dropped);
  }
}

void RoundChecker::check_applied(Address actor, const event::BucketApplied& applied) {
  Shard& shard = shards_[actor];
  const auto contributor = shard.contributors.find(applied.worker);
  if (applied.iteration != shard.round || contributor == shard.contributors.end())
    violated({actor, address_of(applied.worker)}, "bucket ", applied.bucket, " of iteration ",
             applied.iteration, " applied; round ", shard.round, " was closed last, without it");
  ++contributor->second;
}

void RoundChecker::check_dropped(Address actor, const event::PushDropped& dropped) {
  Shard& shard = shards_[actor];
  const WorkerId worker = dropped.worker;
  if (shard.fenced.contains(worker)) return;
  if (shard.contributors.contains(worker))
    violated({actor, address_of(worker)}, "iteration ", dropped.iteration,
             " dropped, although it contributed to its round");
  if (++shard.dropped > most_dropped_)
    violated({actor, address_of(worker)}, shard.dropped, " pushes dropped in round ",
             dropped.iteration, "; the limit is ", most_dropped_);
}

void RoundChecker::check_started(Address actor, const event::StepStarted& started) const {
  const auto next = next_.find(actor);
  if (next != next_.end() && started.iteration < next->second)
    violated({actor}, "iteration ", started.iteration,
             " starts after an order to continue with iteration ", next->second);
}

void RoundChecker::check_partial(const event::PartialPush& partial) const {
  for (std::int64_t i = 0; i < partial.iterations; ++i) {
    const Iteration iteration = partial.iteration + i;
    const auto round = rounds_.find(iteration);
    if (round == rounds_.end() ||
        !std::ranges::binary_search(round->second.contributors, partial.worker))
      violated({kScheduler, address_of(partial.worker)}, "iteration ", iteration,
               " is partial, but contributed to no round");
  }
}

void RoundChecker::on_delivered(Instant, const Letter& letter) {
  if (letter.from() != kScheduler) return;
  if (const auto* dropped =
          letter.to().kind == RoleKind::worker ? letter.as<msg::PushDropped>() : nullptr)
    next_[letter.to()] = std::max(next_[letter.to()], dropped->next);
  if (const auto* lease =
          drops_ && letter.to().kind == RoleKind::worker ? letter.as<msg::Lease>() : nullptr)
    shares_[lease->first_iteration][WorkerId(letter.to().index)] = {lease->end - lease->begin,
                                                                    lease->round_samples};
  if (letter.to().kind != RoleKind::shard || !orders_.is_next(letter)) return;
  const auto* close = letter.as<msg::CloseRound>();
  if (!close) return;
  Shard& shard = shards_[letter.to()];
  if (close->round <= shard.round)
    violated({letter.to()}, "round ", close->round, " is closed after round ", shard.round);
  const Closed closed{close->contributors, close->scale};
  const auto [known, first] = rounds_.try_emplace(close->round, closed);
  if (known->second.contributors != closed.contributors)
    violated({letter.to()}, "round ", close->round, " is closed with other contributors here");
  if (known->second.scale != closed.scale)
    violated({letter.to()}, "round ", close->round, " is closed with another scale here");
  if (first) {
    check_scale(letter.to(), close->round, closed);
    // Contributors have pulled from all shards, so no shard is more than one round behind.
    rounds_.erase(rounds_.begin(), rounds_.lower_bound(close->round + -8));
    shares_.erase(shares_.begin(), shares_.lower_bound(close->round + -8));
  }
  check_last_round(letter.to(), shard);
  std::erase_if(shard.fenced, [](const auto& worker) { return worker.second; });
  shard.round = close->round;
  shard.dropped = 0;
  shard.contributors.clear();
  for (const WorkerId worker : close->contributors) shard.contributors[worker] = 0;
}

void RoundChecker::check_scale(Address shard, Iteration round, const Closed& closed) const {
  const auto leased = shares_.find(round);
  if (leased == shares_.end()) return;  // no worker has samples
  // After local steps, each push counts as one whole iteration.
  const bool equal = has_local_steps(job_->plan);
  double weight = 0;
  for (const auto& [worker, share] : leased->second) {
    if (share.samples == 0 || !std::ranges::binary_search(closed.contributors, worker)) continue;
    const auto samples = equal ? static_cast<double>(iteration_samples(job_->plan))
                               : static_cast<double>(share.samples);
    weight += samples / static_cast<double>(share.of);
  }
  constexpr double kRounding = 1e-9;
  const double scaled = weight * closed.scale;
  // With unequal batches, the weights can be divided by more samples than a round needs.
  const bool exact = job_->plan.balance == plan::Balance::equal;
  const double least = std::min(weight, 1.0), most = exact ? least : 1.0;
  if (scaled > most + kRounding || scaled < least - kRounding)
    violated({shard}, "the pushes of round ", round, " weigh ", weight, " and are scaled by ",
             closed.scale);
}

void RoundChecker::check_last_round(Address address, const Shard& shard) const {
  const std::size_t buckets = job_->layout->buckets(ShardId(address.index)).size();
  for (const auto& [worker, applied] : shard.contributors)
    if (applied != buckets && !(applied == 0 && shard.fenced.contains(worker)))
      violated({address, address_of(worker)}, applied, " of ", buckets, " buckets of round ",
               shard.round, " were applied");
}

void RoundChecker::on_run_ended(const RunTotals& totals) {
  if (totals.end.reason == msg::RunEnded::Reason::failed) return;
  for (const auto& [address, shard] : shards_) check_last_round(address, shard);
}

}  // namespace leeway::sim
