#include "actors/group/group_lead.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "actors/worker/warm_up.hpp"
#include "core/mutant.hpp"
#include "core/text.hpp"
#include "models/gradient_sum.hpp"
#include "policies/balance/micro_batches.hpp"

namespace leeway {

GroupLead::GroupLead(std::shared_ptr<const Job> job, WorkerId id, std::uint32_t launch)
    : WholeWorker(std::move(job), id, launch) {
  if (!job_->cost_only) sums_on_ = job_->executor(job_->devices.worker(id.value()));
}

void GroupLead::warm_up() {
  warm_up_engine(job_, id_, engine_);
}

// ---- membership ----

void GroupLead::forget() {
  if (iterating_ && iterating_->own) iterating_->own->cancel();
  iterating_.reset();
}

bool GroupLead::is_follower(Address actor) const {
  return actor.kind == RoleKind::worker && actor != address_of(id_) &&
         job_->stages->lead_of(WorkerId(actor.index)) == id_;
}

void GroupLead::on_link(Address peer, Outbox& out) {
  if (!is_follower(peer)) return Participant::on_link(peer, out);
  if (!planted(Mutant::group_session_kept)) rejoin_after_link(out);
}

void GroupLead::advance(Outbox& out) {
  if (state_ == State::joining || state_ == State::stopped) return;
  const bool is_done = !iterating_ && parameters_.all_acknowledged();
  if (stopping_) {
    if (!is_done) return;
    end_group(out);
    return say_stopped(out);
  }
  if (state_ == State::idle || diverged_) return;
  lease_beyond(next_, out);
  if (leases_.leased(next_)) {
    pull_next(out);
    if (!iterating_ && parameters_.arrived(next_)) start_iteration(out);
  } else if (leases_.no_data() && is_done) {
    end_group(out);
    say_idle(out);
  }
}

void GroupLead::end_group(Outbox& out) {
  for (const WorkerId follower : job_->stages->neighbours(id_))
    send(address_of(follower), msg::GroupEnd{next_}, out);
}

// ---- the samples of an iteration ----

std::uint32_t GroupLead::workers_for(std::int64_t samples) const {
  return static_cast<std::uint32_t>(std::min<std::int64_t>(job_->stages->count(), samples));
}

LeasedIteration GroupLead::share_of(const LeasedIteration& leased, std::uint32_t index) const {
  LeasedIteration share{.epoch = leased.epoch, .begin = leased.begin, .end = leased.begin};
  const std::uint32_t workers = workers_for(leased.samples());
  if (index >= workers) return share;
  share.begin += first_sample(leased.samples(), index, workers);
  if (index > 0 && planted(Mutant::group_samples_twice)) --share.begin;
  share.end += first_sample(leased.samples(), index + std::int64_t{1}, workers);
  return share;
}

std::int64_t GroupLead::samples_to_compute(const LeasedIteration& leased) const {
  return share_of(leased, 0).samples();
}

std::vector<float> GroupLead::scales_of(const LeasedIteration& leased) const {
  std::vector<float> scales;
  for (std::uint32_t index = 0; index < workers_for(leased.samples()); ++index)
    scales.push_back(mean_scale(share_of(leased, index).samples(), leased.samples()));
  return scales;
}

void GroupLead::start_iteration(Outbox& out) {
  PulledWeights pulled = parameters_.take(next_);
  const LeasedIteration& leased = begin_next(out);
  pushed_.loss_scale = pulled.loss_scale;
  const Iteration iteration = pushed_.iteration;
  if (leased.samples() == 0) {
    parameters_.push_empty(iteration, out);
    count_iteration(iteration, 0, out);
    return advance(out);
  }
  send_shares(leased, pulled, out);
  std::vector<Version> versions = pulled.versions;
  auto weights = std::make_shared<DeviceWeights>(job_, std::move(pulled));
  auto own = std::make_shared<ComputeWork>(
      job_, id_, engine_,
      task_of(*job_, share_of(leased, 0), std::move(weights), iteration, pushed_.loss_scale));
  std::vector<std::vector<int>> layers;
  for (int part = 0; part < own->parts(); ++part) layers.push_back(own->layers_of(part));
  iterating_.emplace(
      Iterating{.own = own,
                .gradients = GroupGradients(*job_, id_, layers, workers_for(leased.samples())),
                .scales = scales_of(leased),
                .layers = std::move(layers),
                .versions = std::move(versions)});
  out.compute(std::move(own));
}

void GroupLead::send_shares(const LeasedIteration& leased, const PulledWeights& weights,
                            Outbox& out) {
  msg::GroupShare share{.iteration = pushed_.iteration, .epoch = leased.epoch};
  share.loss_scale = weights.loss_scale;
  for (const Block& block : job_->layout->blocks())
    share.blocks.push_back({block.id, weights.versions[block.id.value()], DType::f32,
                            Shape{block.floats}, weights.blobs[block.id.value()]});
  for (std::uint32_t index = 1; index < workers_for(leased.samples()); ++index) {
    const LeasedIteration own = share_of(leased, index);
    share.begin = own.begin;
    share.end = own.end;
    send(address_of(job_->stages->worker(id_, index)), share, out);
  }
}

// ---- gradients ----

void GroupLead::on_part(Work& work, int part, Outbox& out) {
  if (!iterating_ || diverged_) return;  // of an earlier session, or given up
  if (&work == iterating_->own.get()) return computed_part(part, out);
  if (&work == iterating_->sum.get()) push(*iterating_->sum, out);
}

void GroupLead::computed_part(int part, Outbox& out) {
  const std::shared_ptr<ComputeWork> work = iterating_->own;
  if (!work->diverged_layer().empty())
    return give_up(work->result().loss, work->diverged_layer(), out);
  const auto number = static_cast<std::uint32_t>(part);
  LW_CHECK(iterating_->gradients.add(0, number, take_gradients(*job_, id_, *work, part)), id_,
           part);
  if (part + 1 == work->parts()) {
    const std::int64_t samples = work->samples();
    count_result(work->result(), samples);
    iterating_->own.reset();
    count_computed(pushed_.iteration, samples, out);
  }
  arrived(0, out);
}

bool GroupLead::take(Address from, Envelope& envelope, Outbox& out) {
  return take_any_of<msg::GroupGradient, msg::GroupDiverged>(
             from, envelope, is_follower(from), "not in this host group",
             [&](auto& message) { handle(from, message, out); }, out) ||
         WholeWorker::take(from, envelope, out);
}

void GroupLead::handle(Address from, msg::GroupGradient& gradient, Outbox& out) {
  if (diverged_) return;
  const std::uint32_t index = index_of(from);
  const bool is_expected =
      iterating_ && gradient.iteration == pushed_.iteration && index < workers_for(pushed_.samples);
  if (!is_expected || !iterating_->gradients.add(index, gradient.part, std::move(gradient.blocks)))
    return refuse_malformed(from, gradient.iteration,
                            "group gradient: not the next part, or other blocks", out);
  arrived(index, out);
}

void GroupLead::handle(Address from, const msg::GroupDiverged& diverged, Outbox& out) {
  if (diverged_) return;
  const std::uint32_t index = index_of(from);
  if (!iterating_ || diverged.iteration != pushed_.iteration ||
      index >= workers_for(pushed_.samples) || iterating_->gradients.is_complete(index))
    return refuse_malformed(from, diverged.iteration, "group diverged: not expected", out);
  give_up(diverged.loss, diverged.layer, out);
}

void GroupLead::give_up(double loss, const std::string& layer, Outbox& out) {
  say_diverged({pushed_.iteration, loss, layer}, out);
  next_ = pushed_.iteration;  // it was not pushed
  forget();
  advance(out);
}

void GroupLead::arrived(std::uint32_t index, Outbox& out) {
  if (iterating_->gradients.is_complete()) {
    const Instant now = out.now();
    const Duration waited = now - std::exchange(waiting_since_, now);
    const WorkerId last = job_->stages->worker(id_, index);
    if (last != id_) count_wait(last, waited);
    out.emit(event::GroupGathered{id_, pushed_.iteration, last, last != id_ ? waited : Duration()});
  }
  sum_next(out);
}

void GroupLead::count_wait(WorkerId for_worker, Duration time) {
  report_.wait += time;
  auto& waits = report_.group_waits;
  auto found = std::ranges::find(waits, for_worker, &msg::Wait::for_worker);
  if (found == waits.end()) found = waits.insert(found, {id_, for_worker, {}, 0});
  found->time += time;
  ++found->count;
}

void GroupLead::sum_next(Outbox& out) {
  if (iterating_->sum) return;
  auto part = iterating_->gradients.take();
  if (!part) return;
  iterating_->sum =
      std::make_shared<GroupSumWork>(job_, sums_on_, iterating_->scales, std::move(*part));
  out.compute(iterating_->sum);
}

void GroupLead::push(GroupSumWork& sum, Outbox& out) {
  if (job_->scales_losses && !std::isfinite(sum.squares())) {
    has_pushed_any_ = true;
    parameters_.push_overflow(pushed_, out);
    return finish_iteration(out);
  }
  if (job_->clips_pushes()) pushed_.scale = job_->clip_scale_of(sum.squares());
  for (const int layer : iterating_->layers[iterating_->pushed]) {
    has_pushed_any_ = true;
    parameters_.push_layer(
        pushed_, layer, iterating_->versions, [&](BlockId id) { return sum.take(id); }, out);
    fail_if_planned<plan::Killed>(pushed_.iteration, "is killed");
  }
  iterating_->sum.reset();
  if (++iterating_->pushed == iterating_->layers.size()) return finish_iteration(out);
  sum_next(out);
}

void GroupLead::finish_iteration(Outbox& out) {
  iterating_.reset();
  const Instant now = out.now();
  report_.compute += now - std::exchange(waiting_since_, now);  // the last sum
  spend(pushed_.samples, now);
  report(false, out);
  advance(out);
}

}  // namespace leeway
