#include "actors/worker.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "core/check.hpp"
#include "core/mutant.hpp"
#include "core/text.hpp"
#include "policies/balance/balance.hpp"

namespace leeway {
namespace {

constexpr Duration kReportInterval = milliseconds(50);
constexpr Duration kJoinInterval = milliseconds(500);

/// Thrown where the plan asks a worker to fail.
struct PlannedFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace

Worker::Worker(std::shared_ptr<const Job> job, WorkerId id, std::uint32_t life)
    : job_(std::move(job)),
      id_(id),
      incarnation_(first_incarnation(life)),
      buffers_(make_buffers()),
      unacknowledged_(job_->layout->shards()) {}

std::shared_ptr<StepBuffers> Worker::make_buffers() const {
  if (job_->cost_only) return nullptr;
  return std::make_shared<StepBuffers>(job_, id_);
}

template <class T>
void Worker::send(Address to, T body, Outbox& out) {
  out.send(to, encode({.incarnation = incarnation_, .body = std::move(body)}));
}

void Worker::on_start(Outbox& out) {
  join(out);
}

void Worker::join(Outbox& out) {
  send(kScheduler, msg::Join{}, out);
  out.after(kJoinInterval, incarnation_.value());
}

void Worker::on_timer(TimerToken token, Outbox& out) {
  if (token == incarnation_.value() && state_ == State::joining && !stopping_) join(out);
}

void Worker::on_envelope(Address from, Envelope& envelope, Outbox& out) {
  if (from.kind != RoleKind::host && envelope.incarnation != incarnation_ &&
      !std::holds_alternative<msg::Refused>(envelope.body))
    return;  // meant for an earlier life
  auto& body = envelope.body;
  if (auto* weights = std::get_if<msg::Weights>(&body)) {
    handle(from, *weights, out);
  } else if (auto* pushed = std::get_if<msg::Pushed>(&body)) {
    handle(from, *pushed, out);
  } else if (auto* refused = std::get_if<msg::Refused>(&body)) {
    handle(from, envelope.incarnation, *refused, out);
  } else if (from != kScheduler) {
    refuse_malformed(from, {}, concat("a ", name_of(body), " from ", from, " is not for a worker"),
                     out);
  } else if (auto* lease = std::get_if<msg::Lease>(&body)) {
    handle(*lease, out);
  } else if (auto* no_data = std::get_if<msg::NoData>(&body)) {
    handle(*no_data, out);
  } else if (auto* late = std::get_if<msg::Late>(&body)) {
    handle(from, *late, out);
  } else if (auto* start = std::get_if<msg::Start>(&body)) {
    handle(*start, out);
  } else if (std::holds_alternative<msg::Stop>(body)) {
    stopping_ = true;
    advance(out);
  } else {
    refuse_malformed(from, {}, concat("a ", name_of(body), " is not for a worker"), out);
  }
}

// ---- membership and leases ----

void Worker::handle(const msg::Start& start, Outbox& out) {
  if (start.number <= start_ || (state_ != State::joining && state_ != State::idle)) return;
  start_ = start.number;
  state_ = State::running;
  no_data_ = false;
  asked_.reset();
  next_ = next_unleased_ = start.iteration;
  waiting_since_ = out.now();
  advance(out);
}

void Worker::handle(const msg::Lease& lease, Outbox& out) {
  if (state_ != State::running || lease.first_iteration != next_unleased_) return;  // a repeat
  if (lease.end > job_->data.train->size() || lease.batch > largest_batch(job_->plan))
    return refuse_malformed(kScheduler, lease.first_iteration,
                            "lease: beyond the data, or a batch above what the plan allows", out);
  asked_.reset();
  no_data_ = false;
  next_unleased_ = next_unleased_ + lease.iterations();
  if (leases_.empty()) leased_position_ = lease.begin;
  leases_.push_back(lease);
  advance(out);
}

void Worker::handle(const msg::NoData& no_data, Outbox& out) {
  if (state_ != State::running || no_data.next != next_unleased_) return;
  asked_.reset();
  no_data_ = true;
  advance(out);
}

void Worker::handle(Address from, const msg::Late& late, Outbox& out) {
  if (from != kScheduler || !job_->consistency->drops_late())
    return refuse_malformed(from, late.next, "no round is closed without a worker here", out);
  if (state_ != State::running) return;
  // Parts that are not acknowledged are kept until their shards say that they may be forgotten.
  if (step_ && step_->iteration() < late.next) late_ = true;
  while (!leases_.empty() && leases_.front().first_iteration < late.next) leases_.pop_front();
  if (!leases_.empty()) leased_position_ = leases_.front().begin;
  incoming_.erase(incoming_.begin(), incoming_.lower_bound(late.next));
  if (asked_ && *asked_ < late.next) asked_.reset();
  no_data_ = false;  // its own samples came back, if no others
  next_ = std::max(next_, late.next);
  next_unleased_ = std::max(next_unleased_, late.next);
  advance(out);
}

void Worker::ask_for_lease(Outbox& out) {
  // One iteration ahead, so that the answer is here before it is needed.
  if (asked_ || no_data_ || next_unleased_ - next_ > 1) return;
  asked_ = next_unleased_;
  want_lease(out);
}

void Worker::want_lease(Outbox& out) {
  spent_.next = *asked_;
  spent_.clock = acknowledged();
  send(kScheduler, std::exchange(spent_, {}), out);
}

StepSamples Worker::take_samples() {
  auto& lease = leases_.front();
  const std::int64_t begin = leased_position_;
  const std::int64_t end = std::min(begin + static_cast<std::int64_t>(lease.batch), lease.end);
  StepSamples taken{lease.epoch, {}};
  round_samples_ = lease.round_samples;
  report_.epoch = lease.epoch;
  if (job_->cost_only) {
    taken.samples.assign(static_cast<std::size_t>(end - begin), 0);  // which ones is all the same
  } else if (end > begin) {
    const auto order = job_->orders->of(lease.epoch);
    taken.samples.assign(order->begin() + begin, order->begin() + end);
  }
  leased_position_ = end;
  if (end == lease.end) {
    leases_.pop_front();
    if (!leases_.empty()) leased_position_ = leases_.front().begin;
  }
  return taken;
}

// ---- the iteration ----

template <class Kind>
bool Worker::planned(Iteration iteration) const {
  if (life_of(incarnation_) > 1) return false;  // once is enough
  return std::any_of(job_->faults.begin(), job_->faults.end(), [&](const plan::Fault& fault) {
    const auto* at = std::get_if<std::int64_t>(&fault.at);
    return fault.actor == address_of(id_) && std::holds_alternative<Kind>(fault.kind) && at &&
           iteration.value() >= *at;
  });
}

void Worker::advance(Outbox& out) {
  if (state_ == State::joining || state_ == State::stopped) {
    if (stopping_ && state_ == State::joining) {
      state_ = State::stopped;
      send(kScheduler, msg::Stopped{Clock(next_.value())}, out);
    }
    return;
  }
  const bool all_acknowledged = std::all_of(unacknowledged_.begin(), unacknowledged_.end(),
                                            [](const auto& waiting) { return waiting.empty(); });
  if (stopping_) {
    if ((step_ && !late_) || !all_acknowledged) return;
    if (step_) {  // late, and may still be computing: nobody waits for it
      out.emit(
          {.kind = Event::Kind::step_finished, .worker = id_, .iteration = step_->iteration()});
      step_.reset();
    }
    report(true, out);
    state_ = State::stopped;
    send(kScheduler, msg::Stopped{acknowledged()}, out);
    return;
  }
  if (state_ == State::idle || diverged_) return;
  ask_for_lease(out);
  if (leased(next_)) {
    if (!incoming_.contains(next_) && (!step_ || job_->plan.prefetch)) pull(next_, out);
    if (!step_ && incoming_.at(next_).missing == 0) start_step(out);
  } else if (no_data_ && !step_ && all_acknowledged) {
    report(true, out);
    state_ = State::idle;
    send(kScheduler, msg::Idle{acknowledged(), start_}, out);
  }
}

void Worker::pull(Iteration iteration, Outbox& out) {
  auto& incoming = incoming_[iteration];
  const Iteration sent = step_ ? step_->iteration() : next_;
  incoming.iteration = iteration;
  incoming.pull = msg::Pull{iteration, Clock(sent.value()), DType::f32};
  incoming.arrived.assign(job_->layout->shards(), false);
  incoming.missing = job_->layout->shards();
  incoming.blobs.resize(job_->layout->blocks().size());
  incoming.versions.resize(job_->layout->blocks().size());
  for (std::uint32_t shard = 0; shard < job_->layout->shards(); ++shard)
    send(address_of(ShardId(shard)), incoming.pull, out);
}

void Worker::handle(Address from, msg::Weights& weights, Outbox& out) {
  const auto found = incoming_.find(weights.iteration);
  if (found == incoming_.end()) return;  // no longer wanted
  if (from.kind != RoleKind::shard || from.index >= job_->layout->shards())
    return refuse_malformed(from, weights.iteration, "weights from a stranger", out);
  auto& incoming = found->second;
  if (incoming.arrived[from.index]) return;
  const auto& expected = job_->layout->blocks_of(ShardId(from.index));
  if (weights.blocks.size() != expected.size())
    return refuse_malformed(from, weights.iteration, "weights of another placement", out);
  for (auto& block : weights.blocks) {
    const bool ours = block.block.value() < job_->layout->blocks().size() &&
                      job_->layout->block(block.block).shard == ShardId(from.index);
    if (!ours || block.dtype != DType::f32 ||
        block.shape.count() != job_->layout->block(block.block).floats)
      return refuse_malformed(from, weights.iteration,
                              concat("weights: block ", block.block, " does not fit"), out);
  }
  for (auto& block : weights.blocks) {
    incoming.blobs[block.block.value()] = std::move(block.data);
    incoming.versions[block.block.value()] =
        block.version + (planted(Mutant::gradient_of_other_weights) ? 1 : 0);
  }
  incoming.arrived[from.index] = true;
  if (--incoming.missing == 0) advance(out);
}

void Worker::start_step(Outbox& out) {
  const Iteration iteration = next_;
  auto incoming = std::move(incoming_.extract(iteration).mapped());
  report_.wait += out.now() - waiting_since_;
  spent_.waited += out.now() - waiting_since_;
  StepSamples samples = take_samples();
  const auto count = static_cast<std::int64_t>(samples.samples.size());
  out.emit(
      {.kind = Event::Kind::step_started, .worker = id_, .iteration = iteration, .value = count});
  if (planned<plan::Throws>(iteration))
    throw PlannedFault(
        concat("fault of the plan: ", address_of(id_), " throws in iteration ", iteration));
  next_ = iteration + 1;
  step_since_ = out.now();
  if (count == 0) {
    push_empty(out);
    finish_iteration(iteration, 0, out);
    return;
  }
  step_versions_ = std::move(incoming.versions);
  step_ = std::make_shared<Step>(job_, buffers_, iteration, std::move(samples),
                                 std::move(incoming.blobs), step_versions_);
  out.compute(step_);
  advance(out);  // a prefetch may go out now
}

void Worker::on_part(Work& work, int part, Outbox& out) {
  if (&work != step_.get() || diverged_) return;  // of an earlier life, or given up
  if (late_) {
    if (part + 1 < step_->parts()) return;
    const Iteration iteration = step_->iteration();
    step_.reset();
    late_ = false;
    return finish_iteration(iteration, 0, out);
  }
  if (!step_->diverged_layer().empty()) {
    diverged_ = {step_->iteration(), step_->loss(), step_->diverged_layer()};
    send(kScheduler, *diverged_, out);
  } else {
    push_layer(*step_, step_->layer_of(part), out);
  }
  if (part + 1 < step_->parts() && !diverged_) return;
  if (diverged_) {
    next_ = step_->iteration();  // it was not pushed
    step_.reset();
    return advance(out);
  }
  const Iteration iteration = step_->iteration();
  const auto samples = static_cast<std::int64_t>(step_->samples().samples.size());
  report_.samples += static_cast<std::uint64_t>(samples);
  report_.correct += static_cast<std::uint64_t>(step_->correct());
  report_.loss_sum += step_->loss() * static_cast<double>(samples);
  step_.reset();
  finish_iteration(iteration, samples, out);
}

void Worker::finish_iteration(Iteration iteration, std::int64_t samples, Outbox& out) {
  out.emit({.kind = Event::Kind::step_finished,
            .worker = id_,
            .iteration = iteration,
            .value = samples});
  waiting_since_ = out.now();
  report_.compute += waiting_since_ - step_since_;
  report_.clock = Clock(next_.value());
  if (samples > 0) {
    ++report_.iterations;
    ++spent_.iterations;
    spent_.samples += static_cast<std::uint64_t>(samples);
    spent_.computed += waiting_since_ - step_since_;
  }
  report(false, out);
  advance(out);
}

// ---- pushing ----

double Worker::push_weight(std::int64_t samples) const {
  return static_cast<double>(samples) / static_cast<double>(round_samples_);
}

void Worker::push(std::uint32_t shard, msg::Push push, Outbox& out) {
  const Unacknowledged waiting{push.iteration, push.part,
                               encode({.incarnation = incarnation_, .body = std::move(push)})};
  unacknowledged_[shard].push_back(waiting);
  out.send(address_of(ShardId(shard)), waiting.message);
}

void Worker::push_layer(Step& step, int layer, Outbox& out) {
  const auto samples = static_cast<std::int64_t>(step.samples().samples.size());
  for (std::uint32_t shard = 0; shard < job_->layout->shards(); ++shard) {
    const auto& parts = job_->layout->parts(ShardId(shard));
    for (const auto& part : parts) {
      if (part.layer != layer) continue;
      msg::Push message;
      message.iteration = step.iteration();
      message.part = part.index;
      message.part_count = static_cast<std::uint32_t>(parts.size());
      message.weight = push_weight(samples);
      message.samples = static_cast<std::uint32_t>(samples);
      for (const BlockId id : part.blocks)
        message.blocks.push_back({id, step_versions_[id.value()], DType::f32,
                                  Shape{job_->layout->block(id).floats}, step.take_gradient(id)});
      push(shard, std::move(message), out);
    }
  }
  if (planned<plan::Killed>(step.iteration()))
    throw PlannedFault(concat("fault of the plan: ", address_of(id_), " is killed in iteration ",
                              step.iteration()));
}

void Worker::push_empty(Outbox& out) {
  for (std::uint32_t shard = 0; shard < job_->layout->shards(); ++shard) {
    const auto& parts = job_->layout->parts(ShardId(shard));
    for (const auto& part : parts) {
      msg::Push message;
      message.iteration = Iteration(next_.value() - 1);
      message.part = part.index;
      message.part_count = static_cast<std::uint32_t>(parts.size());
      message.kind = msg::Push::Kind::empty;
      push(shard, std::move(message), out);
    }
  }
}

void Worker::handle(Address from, const msg::Pushed& pushed, Outbox& out) {
  if (from.kind != RoleKind::shard || from.index >= unacknowledged_.size())
    return refuse_malformed(from, pushed.iteration, "an acknowledgement from a stranger", out);
  std::erase_if(unacknowledged_[from.index], [&](const Unacknowledged& waiting) {
    return waiting.iteration == pushed.iteration && waiting.part == pushed.part;
  });
  if (unacknowledged_[from.index].empty()) advance(out);
}

Clock Worker::acknowledged() const {
  Clock clock(step_ ? step_->iteration().value() : next_.value());
  for (const auto& shard : unacknowledged_)
    for (const auto& waiting : shard) clock = std::min(clock, Clock(waiting.iteration.value()));
  return clock;
}

// ---- refusals and broken links ----

void Worker::handle(Address from, Incarnation incarnation, const msg::Refused& refused,
                    Outbox& out) {
  if (refused.reason == msg::Refused::Reason::unknown_worker) {
    const bool evicted =
        state_ == State::running || (state_ != State::stopped && from == kScheduler);
    if (incarnation == incarnation_ && evicted && !stopping_) rejoin(out);
    return;
  }
  if (refused.reason == msg::Refused::Reason::gap &&
      (incarnation != incarnation_ || keeps_earlier(from, refused.iteration)))
    return;  // what was lost with a connection goes again when the link is told of, and this after
             // it
  // Anything else is a defect of this worker: better to end, and be evicted, than to train on.
  throw std::runtime_error(concat(from, " refused a message of ", address_of(id_), " as ",
                                  name_of(refused.reason), ": ", refused.text));
}

bool Worker::keeps_earlier(Address shard, Iteration iteration) const {
  if (shard.kind != RoleKind::shard || shard.index >= unacknowledged_.size()) return false;
  const auto& kept = unacknowledged_[shard.index];
  return !kept.empty() && kept.front().iteration < iteration;
}

void Worker::rejoin(Outbox& out) {
  incarnation_ = Incarnation(incarnation_.value() + 1);
  state_ = State::joining;
  leases_.clear();
  incoming_.clear();
  for (auto& shard : unacknowledged_) shard.clear();
  step_.reset();
  buffers_ = make_buffers();  // the old ones may still be computing
  asked_.reset();
  spent_ = {};
  no_data_ = late_ = false;
  diverged_.reset();
  join(out);
}

void Worker::on_link(Address peer, Outbox& out) {
  if (peer == kScheduler) {
    if (state_ == State::joining) send(kScheduler, msg::Join{}, out);
    if (asked_ && !planted(Mutant::lease_not_asked_again)) want_lease(out);
    if (state_ == State::idle) send(kScheduler, msg::Idle{acknowledged(), start_}, out);
    if (state_ == State::stopped) send(kScheduler, msg::Stopped{acknowledged()}, out);
    if (diverged_) send(kScheduler, *diverged_, out);
    return;
  }
  if (peer.kind != RoleKind::shard || peer.index >= unacknowledged_.size()) return;
  if (!planted(Mutant::push_not_sent_again))
    for (const auto& waiting : unacknowledged_[peer.index]) out.send(peer, waiting.message);
  for (const auto& [iteration, incoming] : incoming_)
    if (!incoming.arrived[peer.index]) send(peer, incoming.pull, out);
}

void Worker::report(bool now, Outbox& out) {
  if (!now && out.now() - reported_at_ < kReportInterval) return;
  reported_at_ = out.now();
  send(kMonitor, report_, out);
  report_ = msg::WorkerReport{.clock = report_.clock, .epoch = report_.epoch};
}

}  // namespace leeway
