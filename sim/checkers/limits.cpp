#include "sim/checkers/limits.hpp"

#include <algorithm>

#include "core/limits.hpp"

namespace leeway::sim {

void LimitsChecker::on_sent(Instant, const Letter& letter) {
  const std::size_t header = letter.message().header().size_bytes();
  const std::size_t blobs = letter.message().blobs().size();
  if (header > limits::kMaxHeaderBytes || blobs > limits::kMaxBlobs)
    violated({letter.from(), letter.to()}, "a message with a header of ", header, " bytes and ",
             blobs, " blobs");
}

void LimitsChecker::on_delivered(Instant, const Letter& letter) {
  if (letter.from() != kScheduler || letter.to().kind != RoleKind::shard ||
      !orders_.is_next(letter))
    return;
  if (const auto* admit = letter.as<msg::Admit>()) {
    auto& worker = workers_.at(letter.to(), admit->worker);
    worker = {.session = admit->session, .parked = std::move(worker.parked)};
  } else if (const auto* raise = letter.as<msg::Raise>()) {
    auto& worker = workers_.at(letter.to(), raise->worker);
    worker.began = std::max(worker.began, raise->iteration.value());
  }
}

void LimitsChecker::on_event(Instant, Address actor, const Event& event) {
  if (actor.kind != RoleKind::shard) return;
  if (const auto* parked = event.as<event::PullParked>()) {
    check_parked(actor, *parked);
  } else if (const auto* answered = event.as<event::PullAnswered>()) {
    std::erase(workers_.at(actor, answered->worker).parked, answered->iteration);
  } else if (const auto* refused = event.as<event::Refused>()) {
    if (refused->worker.value() >= limits::kMaxWorkers) return;  // the sender is unknown
    std::erase(workers_.at(actor, refused->worker).parked, refused->iteration);
  } else if (const auto* removed = event.as<event::Removed>()) {
    workers_.at(actor, removed->worker).parked.clear();
  } else if (const auto* admitted = event.as<event::Admitted>()) {
    workers_.at(actor, admitted->worker).began = admitted->iteration.value();
  } else if (const auto* applied = event.as<event::BucketApplied>()) {
    auto& worker = workers_.at(actor, applied->worker);
    if (applied->session == worker.session) ++worker.applied;
  } else if (const auto* dropped = event.as<event::PushDropped>()) {
    ++workers_.at(actor, dropped->worker).began;  // no bucket of that iteration will be applied
  } else if (const auto* moved = event.as<event::ClockMoved>()) {
    check_pending(actor, *moved);
  }
}

void LimitsChecker::check_parked(Address actor, const event::PullParked& pull) {
  auto& parked = workers_.at(actor, pull.worker).parked;
  std::erase(parked, pull.iteration);
  parked.push_back(pull.iteration);
  if (parked.size() > limits::kMaxPullsPerWorker)
    violated({actor, address_of(pull.worker)}, parked.size(), " pulls parked; the limit is ",
             limits::kMaxPullsPerWorker);
}

void LimitsChecker::check_pending(Address actor, const event::ClockMoved& moved) {
  const auto& worker = workers_.at(actor, moved.worker);
  const auto& share = job_->stages->share_of(moved.worker).at[actor.index];
  const auto buckets = static_cast<std::int64_t>(share.buckets.size());
  const std::int64_t pending = (moved.clock.value() - worker.began) * buckets - worker.applied;
  const std::int64_t allowed =
      buckets * ((job_->plan.prefetch ? 2 : 1) + job_->stages->version_lag());
  if (pending > allowed)
    violated({actor, address_of(moved.worker)}, pending,
             " buckets accepted but not applied; the limit is ", allowed);
}

}  // namespace leeway::sim
