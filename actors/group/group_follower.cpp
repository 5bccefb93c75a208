#include "actors/group/group_follower.hpp"

#include <algorithm>
#include <utility>

#include "actors/group/group_gradients.hpp"
#include "actors/worker/warm_up.hpp"
#include "core/limits.hpp"
#include "core/mutant.hpp"
#include "core/text.hpp"

namespace leeway {

GroupFollower::GroupFollower(std::shared_ptr<const Job> job, WorkerId id, std::uint32_t launch)
    : Participant(std::move(job), id, launch) {}

void GroupFollower::warm_up() {
  warm_up_engine(job_, id_, engine_);
}

// ---- membership ----

void GroupFollower::started(const msg::Start& start, Outbox& out) {
  next_ = start.iteration;
  ended_ = false;
  waiting_since_ = out.now();
}

void GroupFollower::forget() {
  if (work_) work_->cancel();
  work_.reset();
}

Clock GroupFollower::acknowledged() const {
  return Clock(limits::kCountEnd - 1);
}

void GroupFollower::on_link(Address peer, Outbox& out) {
  if (peer != lead()) return Participant::on_link(peer, out);
  if (!planted(Mutant::group_session_kept)) rejoin_after_link(out);
}

void GroupFollower::advance(Outbox& out) {
  if (state_ == State::joining || state_ == State::stopped) return;
  if (!ended_ || work_) return;
  if (stopping_)
    say_stopped(out);
  else if (state_ == State::running)
    say_idle(out);
}

// ---- iterations ----

bool GroupFollower::take(Address from, Envelope& envelope, Outbox& out) {
  return take_any_of<msg::GroupShare, msg::GroupEnd>(
      from, envelope, from == lead(), "not the lead of this host group",
      [&](auto& message) { handle(from, message, out); }, out);
}

void GroupFollower::handle(Address from, msg::GroupShare& share, Outbox& out) {
  const bool fits = share.begin < share.end && share.end <= job_->data.train->size() &&
                    share.end - share.begin <= largest_share(*job_) &&
                    (share.loss_scale > 0) == job_->scales_losses &&
                    std::ranges::equal(share.blocks, job_->layout->blocks(), is_plain);
  if (work_ || ended_ || share.iteration < next_ || !fits)
    return refuse_malformed(from, share.iteration,
                            "group share: not the next, or beyond what the plan allows", out);
  iteration_ = share.iteration;
  next_ = iteration_ + 1;
  PulledWeights weights;
  for (msg::BlockData& block : share.blocks) {
    weights.blobs.push_back(std::move(block.data));
    weights.versions.push_back(block.version);
  }
  const Duration waited = out.now() - waiting_since_;
  report_.wait += waited;
  report_.epoch = share.epoch;
  out.emit(event::StepStarted{id_, iteration_, share.end - share.begin, waited,
                              job_->stages->stage_of(id_)});
  fail_if_planned<plan::Throws>(iteration_, "throws");
  computing_since_ = out.now();
  const LeasedIteration samples{.epoch = share.epoch, .begin = share.begin, .end = share.end};
  auto bound = std::make_shared<DeviceWeights>(job_, std::move(weights));
  work_ = std::make_shared<ComputeWork>(
      job_, id_, engine_, task_of(*job_, samples, std::move(bound), iteration_, share.loss_scale));
  out.compute(work_);
}

void GroupFollower::handle(Address, const msg::GroupEnd&, Outbox& out) {
  ended_ = true;
  advance(out);
}

void GroupFollower::on_part(Work& work, int part, Outbox& out) {
  if (&work != work_.get()) return;  // of an earlier session
  if (!work_->diverged_layer().empty()) {
    send(lead(), msg::GroupDiverged{iteration_, work_->result().loss, work_->diverged_layer()},
         out);
    work_->cancel();
    work_.reset();
    return advance(out);
  }
  send_gradients(part, out);
  if (part + 1 == work_->parts()) finish(out);
}

void GroupFollower::send_gradients(int part, Outbox& out) {
  send(lead(),
       msg::GroupGradient{iteration_, static_cast<std::uint32_t>(part),
                          take_gradients(*job_, id_, *work_, part)},
       out);
  fail_if_planned<plan::Killed>(iteration_, "is killed");
}

void GroupFollower::finish(Outbox& out) {
  const std::int64_t samples = work_->samples();
  waiting_since_ = out.now();
  report_.compute += waiting_since_ - computing_since_;
  report_.clock = Clock(next_.value());
  count_result(work_->result(), samples);
  ++report_.iterations;
  out.emit(event::StepFinished{id_, iteration_, samples});
  work_.reset();
  report(false, out);
  advance(out);
}

}  // namespace leeway
