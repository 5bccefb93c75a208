#include "sim/checkers/stage_queues.hpp"

#include <algorithm>

#include "policies/pipeline/stage_memory.hpp"

namespace leeway::sim {

StageQueueChecker::StageQueueChecker(std::shared_ptr<const Job> job)
    : Checker("queues between stages are bounded"), job_(std::move(job)) {
  if (!job_->stages->piped()) return;
  const pipeline::Spec& spec = job_->stages->spec();
  for (int stage = 0; stage < spec.stages; ++stage)
    peaks_.push_back(pipeline::stage_counts(spec, stage).activations);
  sessions_.resize(job_->plan.workers);
  sent_.resize(job_->plan.workers);
  // The largest number of iterations to which the micro-batches on the first stage belong.
  const int in_flight = job_->stages->asynchronous()
                            ? (peaks_.front() + 2 * spec.micro_batches - 2) / spec.micro_batches
                            : 1;
  most_announced_ = most_leased_ + in_flight;
}

std::optional<WorkerId> StageQueueChecker::owner_of(Address actor, std::int64_t chunk) const {
  const Stages& stages = *job_->stages;
  if (chunk < 0 || chunk >= static_cast<std::int64_t>(stages.chunks().size())) return std::nullopt;
  const int stage = stages.placement().stage_of(static_cast<int>(chunk));
  return stages.worker(stages.lead_of(WorkerId(actor.index)), static_cast<std::uint32_t>(stage));
}

int StageQueueChecker::peak(Address actor) const {
  return peaks_[job_->stages->stage_of(WorkerId(actor.index))];
}

StageQueueChecker::Sent& StageQueueChecker::sent_by(Address actor, Session session) {
  Sent& sent = sent_[actor.index];
  if (sent.session != session) sent = {.session = session};
  return sent;
}

StageQueueChecker::Sent* StageQueueChecker::sent_to(Address receiver, WorkerId sender) {
  Sent& sent = sent_[sender.value()];
  return sent.session == sessions_[receiver.index] ? &sent : nullptr;
}

void StageQueueChecker::bounded(Address from, Address to, std::size_t count, int most,
                                const char* what) const {
  if (count > static_cast<std::size_t>(most))
    violated({from, to}, count, ' ', what, "; the schedule allows ", most);
}

void StageQueueChecker::on_delivered(Instant, const Letter& letter) {
  if (peaks_.empty() || letter.from() != kScheduler || letter.to().kind != RoleKind::worker) return;
  // A Start of an earlier session may arrive late.
  auto& session = sessions_[letter.to().index];
  if (letter.as<msg::Start>()) session = std::max(session, letter.open()->session);
}

void StageQueueChecker::on_sent(Instant, const Letter& letter) {
  const Address from = letter.from(), to = letter.to();
  if (peaks_.empty() || from.kind != RoleKind::worker || to.kind != RoleKind::worker) return;
  if (const auto* output = letter.as<msg::Activation>()) {
    Sent& sent = sent_by(from, letter.open()->session);
    sent.activations.insert({output->iteration, output->micro_batch, output->chunk});
    bounded(from, to, sent.activations.size(), peak(from), "activations sent but not computed");
  } else if (const auto* gradient = letter.as<msg::OutputGradient>()) {
    Sent& sent = sent_by(from, letter.open()->session);
    sent.gradients.insert({gradient->iteration, gradient->micro_batch, gradient->chunk});
    const auto waiting = std::count_if(
        sent.gradients.begin(), sent.gradients.end(),
        [&](const Key& key) { return owner_of(from, std::get<2>(key)) == WorkerId(to.index); });
    bounded(from, to, static_cast<std::size_t>(waiting), peak(to),
            "gradients sent but not computed");
  } else if (const auto* mini_batch = letter.as<msg::MiniBatch>()) {
    if (mini_batch->begin == mini_batch->end) return;
    Sent& sent = sent_by(from, letter.open()->session);
    sent.announced.insert(mini_batch->iteration);
    bounded(from, to, sent.announced.size(), most_announced_,
            "iterations announced but not started");
    if (job_->stages->stage_of(WorkerId(from.index)) > 0) return;
    sent.leased.insert(mini_batch->iteration);
    bounded(from, kScheduler, sent.leased.size(), most_leased_,
            "iterations leased but not started");
  }
}

void StageQueueChecker::on_event(Instant, Address actor, const Event& event) {
  using Operation = event::StageComputed::Operation;
  if (peaks_.empty() || actor.kind != RoleKind::worker) return;
  if (const auto* started = event.as<event::StepStarted>()) {
    if (Sent* own = sent_to(actor, WorkerId(actor.index))) own->leased.erase(started->iteration);
    if (job_->stages->stage_of(WorkerId(actor.index)) == 0) return;
    const WorkerId previous(actor.index - 1);
    if (Sent* sent = sent_to(actor, previous)) sent->announced.erase(started->iteration);
  } else if (const auto* computed = event.as<event::StageComputed>()) {
    const Key key{computed->iteration, computed->micro_batch, computed->chunk};
    const std::int64_t chunk = computed->chunk;
    if (computed->operation == Operation::forward) {
      if (const auto sender = owner_of(actor, chunk - 1))
        if (Sent* sent = sent_to(actor, *sender)) sent->activations.erase(key);
    } else if (computed->operation == Operation::backward_inputs) {
      if (const auto sender = owner_of(actor, chunk + 1))
        if (Sent* sent = sent_to(actor, *sender)) sent->gradients.erase(key);
    }
  }
}

}  // namespace leeway::sim
