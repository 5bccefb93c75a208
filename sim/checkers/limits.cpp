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
  if (letter.from() != kScheduler || letter.to().kind != RoleKind::shard) return;
  if (const auto* admit = letter.as<msg::Admit>()) {
    auto& worker = workers_.at(letter.to(), admit->worker);
    worker = {.incarnation = admit->incarnation, .parked = std::move(worker.parked)};
  } else if (const auto* raise = letter.as<msg::Raise>()) {
    auto& worker = workers_.at(letter.to(), raise->worker);
    worker.began = std::max(worker.began, raise->iteration.value());
  }
}

void LimitsChecker::on_event(Instant, Address actor, const Event& event) {
  if (actor.kind != RoleKind::shard) return;
  if (event.worker.value() >= limits::kMaxWorkers) return;  // a stranger, who is refused
  auto& worker = workers_.at(actor, event.worker);
  switch (event.kind) {
    case Event::Kind::pull_parked:
      std::erase(worker.parked, event.iteration);
      worker.parked.push_back(event.iteration);
      if (worker.parked.size() > limits::kMaxPullsPerWorker)
        violated({actor, address_of(event.worker)}, worker.parked.size(),
                 " pulls parked; allowed are ", limits::kMaxPullsPerWorker);
      return;
    case Event::Kind::pull_answered:
    case Event::Kind::refused:
      std::erase(worker.parked, event.iteration);
      return;
    case Event::Kind::removed:
      worker.parked.clear();
      return;
    case Event::Kind::admitted:
      worker.began = event.iteration.value();
      return;
    case Event::Kind::bucket_applied:
      if (event.incarnation == worker.incarnation) ++worker.applied;
      return;
    case Event::Kind::push_dropped:
      ++worker.began;  // nothing of that iteration will be applied
      return;
    case Event::Kind::clock_moved: {
      const auto& share = job_->stages->share_of(event.worker).at[actor.index];
      const auto parts = static_cast<std::int64_t>(share.buckets.size());
      const std::int64_t waiting = (event.value - worker.began) * parts - worker.applied;
      const std::int64_t allowed =
          parts * ((job_->plan.prefetch ? 2 : 1) + job_->stages->version_lag());
      if (waiting > allowed)
        violated({actor, address_of(event.worker)}, waiting,
                 " parts taken and not applied; allowed are ", allowed);
      return;
    }
    default:
      return;
  }
}

}  // namespace leeway::sim
