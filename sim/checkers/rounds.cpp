#include "sim/checkers/rounds.hpp"

#include <algorithm>

namespace leeway::sim {

RoundChecker::RoundChecker(std::shared_ptr<const Job> job)
    : Checker("every shard sums the pushes that a round was closed with (3)"),
      job_(std::move(job)),
      spare_(job_->consistency->spare()) {}

void RoundChecker::on_event(Instant, Address actor, const Event& event) {
  if (spare_ == 0) return;
  if (event.kind == Event::Kind::partial) check_partial(event);
  if (actor.kind == RoleKind::worker) on_worker_event(actor, event);
  if (actor.kind != RoleKind::shard) return;
  Shard& shard = shards_[actor];
  if (event.kind == Event::Kind::fenced) shard.fenced[event.worker] = false;
  if (event.kind == Event::Kind::admitted && shard.fenced.contains(event.worker))
    shard.fenced[event.worker] = true;
  const std::vector<Address> actors = {actor, address_of(event.worker)};
  if (event.kind == Event::Kind::bucket_applied) {
    const auto contributor = shard.contributors.find(event.worker);
    if (event.iteration != shard.round || contributor == shard.contributors.end())
      violated(actors, "bucket ", event.value, " of iteration ", event.iteration,
               " applied; round ", shard.round, " was closed last, without it");
    ++contributor->second;
  } else if (event.kind == Event::Kind::push_dropped && !shard.fenced.contains(event.worker)) {
    if (shard.contributors.contains(event.worker))
      violated(actors, "iteration ", event.iteration,
               " dropped, although it contributed to its round");
    if (++shard.dropped > spare_)
      violated(actors, shard.dropped, " pushes dropped in round ", event.iteration, "; spare are ",
               spare_);
  }
}

void RoundChecker::on_worker_event(Address actor, const Event& event) const {
  const auto next = next_.find(actor);
  if (event.kind == Event::Kind::step_started && next != next_.end() &&
      event.iteration < next->second)
    violated({actor}, "iteration ", event.iteration, " begins after an order to go on with ",
             next->second);
}

void RoundChecker::check_partial(const Event& event) const {
  for (std::int64_t i = 0; i < event.value; ++i) {
    const auto round = rounds_.find(event.iteration + i);
    if (round == rounds_.end() ||
        !std::binary_search(round->second.begin(), round->second.end(), event.worker))
      violated({kScheduler, address_of(event.worker)}, "iteration ", event.iteration + i,
               " is partial, but contributed to no round");
  }
}

void RoundChecker::on_delivered(Instant, const Letter& letter) {
  if (letter.from() != kScheduler) return;
  if (const auto* dropped =
          letter.to().kind == RoleKind::worker ? letter.as<msg::PushDropped>() : nullptr)
    next_[letter.to()] = std::max(next_[letter.to()], dropped->next);
  if (letter.to().kind != RoleKind::shard) return;
  const auto* close = letter.as<msg::CloseRound>();
  if (!close) return;
  Shard& shard = shards_[letter.to()];
  if (close->round <= shard.round)
    violated({letter.to()}, "round ", close->round, " is closed after round ", shard.round);
  const auto [known, first] = rounds_.try_emplace(close->round, close->contributors);
  if (known->second != close->contributors)
    violated({letter.to()}, "round ", close->round, " is closed with other contributors here");
  // Contributors have pulled from all shards, so no shard is more than one round behind.
  if (first) rounds_.erase(rounds_.begin(), rounds_.lower_bound(close->round + -8));
  look_back(letter.to(), shard);
  std::erase_if(shard.fenced, [](const auto& worker) { return worker.second; });
  shard.round = close->round;
  shard.dropped = 0;
  shard.contributors.clear();
  for (const WorkerId worker : close->contributors) shard.contributors[worker] = 0;
}

void RoundChecker::look_back(Address address, const Shard& shard) const {
  const std::size_t buckets = job_->layout->buckets(ShardId(address.index)).size();
  for (const auto& [worker, applied] : shard.contributors)
    if (applied != buckets && !(applied == 0 && shard.fenced.contains(worker)))
      violated({address, address_of(worker)}, applied, " of ", buckets, " buckets of round ",
               shard.round, " were applied");
}

void RoundChecker::on_run_ended(const RunTotals& totals) {
  if (totals.end.reason == msg::RunEnded::Reason::failed) return;
  for (const auto& [address, shard] : shards_) look_back(address, shard);
}

}  // namespace leeway::sim
