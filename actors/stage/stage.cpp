#include "actors/stage/stage.hpp"

#include <algorithm>
#include <utility>

#include "core/check.hpp"
#include "core/mutant.hpp"
#include "core/text.hpp"
#include "policies/balance/balance.hpp"
#include "policies/balance/micro_batches.hpp"

namespace leeway {

Stage::Stage(std::shared_ptr<const Job> job, WorkerId id, std::uint32_t launch)
    : Participant(std::move(job), id, launch),
      position_(job_, id),
      sender_(position_, job_->plan.compress),
      progress_(job_->stages->spec(), position_.stage()),
      inputs_(position_, job_->plan.compress),
      weights_(job_, parameters_),
      norms_(position_, sender_, job_->stages->share_of(id).chunks.size()) {}

Stage::~Stage() {
  if (!engine_) return;
  weights_.hand_over(*engine_);
  in_flight_.hand_over(*engine_);
}

// ---- membership ----

void Stage::started(const msg::Start& start, Outbox& out) {
  sender_.begin(session_);
  progress_.start(start.iteration);
  inputs_.clear();
  weights_.clear();
  norms_.clear();
  iterations_.clear();
  given_up_ = false;
  behind_ = Clock(start.iteration.value());
  iteration_since_ = out.now();
  waits_.end(out.now(), report_);
  waits_.begin(out.now());
}

void Stage::forget() {
  work_.reset();
  if (engine_) {
    weights_.hand_over(*engine_);
    in_flight_.hand_over(*engine_);
  } else {
    weights_.clear();
    in_flight_ = {};
  }
}

Clock Stage::acknowledged() const {
  return parameters_.acknowledged(Clock(progress_.finished().value()));
}

Clock Stage::trained() const {
  return position_.is_last() ? acknowledged() : std::min(acknowledged(), behind_);
}

void Stage::on_link(Address peer, Outbox& out) {
  if (!position_.is_neighbour(peer)) return Participant::on_link(peer, out);
  // Messages of this session, or of one that only the neighbour knows, can be lost. So the pipeline
  // starts again, after the iterations that the shards have acknowledged.
  if (!planted(Mutant::links_of_stages_forgotten)) rejoin_after_link(out);
}

void Stage::advance(Outbox& out) {
  if (state_ == State::joining || state_ == State::stopped) return;
  if (state_ == State::idle || given_up_) {
    if (stopping_ && parameters_.all_acknowledged()) say_stopped(out);
    return;
  }
  if (stopping_ && planted(Mutant::stops_in_the_middle)) return say_stopped(out);
  // A step allows the first stage to announce an iteration, and that can allow another step.
  for (bool stepped = true; stepped;) {
    if (position_.is_first()) announce(out);
    pull_versions(out);
    stepped = !work_ && step(out);
  }
  if (!progress_.is_complete() || work_ || !parameters_.all_acknowledged()) return;
  LW_CHECK(in_flight_.size() == 0, in_flight_.size());
  if (stopping_)
    say_stopped(out);
  else
    say_idle(out);
}

// ---- messages of neighbours ----

bool Stage::take(Address from, Envelope& envelope, Outbox& out) {
  return take_any_of<msg::MiniBatch, msg::NoMore, msg::Activation, msg::OutputGradient,
                     msg::GradientNorm, msg::GivenUp>(
      from, envelope, position_.is_neighbour(from), "not a neighbour in this pipeline",
      [&](auto& message) {
        if (!given_up_) handle(from, message, out);
      },
      out);
}

std::optional<std::int64_t> Stage::samples_of(Iteration iteration,
                                              std::uint32_t micro_batch) const {
  const auto found = iterations_.find(iteration);
  if (found == iterations_.end()) return std::nullopt;
  return found->second.size_of(micro_batch);
}

void Stage::handle(Address from, msg::MiniBatch& mini_batch, Outbox& out) {
  const Iteration iteration = mini_batch.iteration;
  const bool fits = mini_batch.end <= job_->data.train->size() &&
                    mini_batch.end - mini_batch.begin <= std::int64_t{largest_batch(job_->plan)};
  if (position_.is_first() || from != position_.previous() || iteration != progress_.announced() ||
      progress_.has_end() || !fits)
    return refuse_malformed(from, iteration,
                            "mini-batch: not the next, or beyond what the plan allows", out);
  announce_iteration(iteration,
                     {mini_batch.epoch, mini_batch.begin, mini_batch.end, mini_batch.round_samples,
                      std::move(mini_batch.applied), mini_batch.flushes},
                     out);
  advance(out);
}

void Stage::handle(Address from, const msg::NoMore& no_more, Outbox& out) {
  if (position_.is_first() || from != position_.previous() ||
      no_more.iteration != progress_.announced() || progress_.has_end())
    return refuse_malformed(from, no_more.iteration, "no more: of another iteration", out);
  announce_end(no_more.iteration, out);
  advance(out);
}

void Stage::handle(Address from, msg::Activation& activation, Outbox& out) {
  const auto samples = samples_of(activation.iteration, activation.micro_batch);
  const std::string error = inputs_.receive(from, activation, samples);
  if (!error.empty()) return refuse_malformed(from, activation.iteration, error, out);
  advance(out);
}

void Stage::handle(Address from, msg::OutputGradient& gradient, Outbox& out) {
  const auto samples = samples_of(gradient.iteration, gradient.micro_batch);
  const std::string error = inputs_.receive(from, gradient, samples);
  if (!error.empty()) return refuse_malformed(from, gradient.iteration, error, out);
  // With several chunks, other stages also send gradients, and know nothing of later stages.
  if (!position_.is_last() && from == position_.next()) behind_ = std::max(behind_, gradient.clock);
  advance(out);
}

void Stage::handle(Address from, const msg::GradientNorm& norm, Outbox& out) {
  if (!job_->clips_pushes() || !iterations_.contains(norm.iteration) ||
      !norms_.receive(from, norm, out))
    return refuse_malformed(from, norm.iteration, "gradient norm: not expected", out);
  advance(out);
}

void Stage::handle(Address, const msg::GivenUp& given_up, Outbox& out) {
  give_up(given_up.iteration, out);
  advance(out);
}

// ---- iterations ----

void Stage::announce(Outbox& out) {
  if (progress_.has_end()) return;
  if (stopping_) return announce_end(progress_.announced(), out);
  // One iteration ahead, so that stages pull while they wait for its first activation.
  const Iteration ahead = progress_.next_forward() + 1;
  lease_beyond(progress_.announced(), out);
  while (progress_.announced() <= ahead && leases_.leased(progress_.announced())) {
    announce_iteration(progress_.announced(), leases_.take(), out);
    lease_beyond(progress_.announced(), out);
  }
  if (leases_.no_data() && !leases_.leased(progress_.announced()))
    announce_end(progress_.announced(), out);
}

void Stage::announce_iteration(Iteration iteration, LeasedIteration leased, Outbox& out) {
  progress_.announce(iteration);
  may_pull_ = true;
  const std::int64_t micro_batches = micro_batches_of(job_->plan, leased.samples());
  const std::size_t chunks = job_->stages->share_of(id_).chunks.size();
  const auto added = iterations_.try_emplace(iteration, std::move(leased), micro_batches, chunks);
  sender_.send_mini_batch(iteration, added.first->second.leased, out);
}

void Stage::announce_end(Iteration end, Outbox& out) {
  progress_.end_at(end);
  sender_.send_no_more(end, out);
}

void Stage::give_up(Iteration iteration, Outbox& out) {
  given_up_ = true;
  sender_.send_given_up(iteration, out);
}

}  // namespace leeway
