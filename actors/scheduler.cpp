#include "actors/scheduler.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/check.hpp"
#include "core/mutant.hpp"
#include "core/text.hpp"
#include "messages/faults.hpp"

namespace leeway {
namespace {

constexpr Duration kReportInterval = milliseconds(200);
constexpr TimerToken kReportTimer = 1;
constexpr TimerToken kTimeLimit = 2;
constexpr std::int64_t kMostCounted = std::int64_t{1} << 60;

LeaseBook::Limits limits_of(const Job& job) {
  const Plan& plan = job.plan;
  LeaseBook::Limits limits;
  limits.data_size = job.data.train->size();
  if (plan.stop.epochs > 0)
    limits.total_samples = std::max<std::int64_t>(
        1, std::llround(plan.stop.epochs * static_cast<double>(limits.data_size)));
  limits.total_iterations = plan.stop.iterations;
  limits.batch = plan.batch;
  limits.chunk = plan.chunk > 0 ? plan.chunk : 8 * plan.batch;
  limits.by_rounds = job.consistency->by_rounds();
  if (const auto* backup = std::get_if<plan::Backup>(&plan.consistency))
    limits.spare = backup->spare;
  return limits;
}

}  // namespace

Scheduler::Scheduler(std::shared_ptr<const Job> job, const std::set<WorkerId>& later)
    : job_(std::move(job)),
      balance_(make_balance(job_->plan)),
      leases_(limits_of(*job_), balance_),
      next_evaluation_(job_->plan.evaluate_every * static_cast<double>(job_->data.train->size())) {
  if (const auto* adaptive = std::get_if<plan::Adaptive>(&job_->plan.consistency))
    bound_.emplace(adaptive->low, adaptive->high);
  for (std::uint32_t index = 0; index < job_->plan.workers; ++index) {
    // Those that join later are like ones that have gone, before their first life.
    const WorkerId worker(index);
    const bool is_later = later.contains(worker) || joins_later(job_->faults, address_of(worker));
    enter(worker, is_later ? State::gone : State::absent);
    if (is_later) members_.at(worker).incarnation = Incarnation(0);
  }
}

void Scheduler::on_start(Outbox& out) {
  for (const auto& [worker, member] : members_) out.watch(address_of(worker));
  for (std::uint32_t shard = 0; shard < job_->layout->shards(); ++shard)
    out.watch(address_of(ShardId(shard)));
  out.after(kReportInterval, kReportTimer);
  if (job_->plan.stop.seconds > 0)
    out.after(nanoseconds(std::llround(job_->plan.stop.seconds * 1e9)), kTimeLimit);
}

void Scheduler::on_timer(TimerToken token, Outbox& out) {
  if (phase_ == Phase::ended) return;
  if (token == kTimeLimit) {
    stop(msg::RunEnded::Reason::finished, "the time limit was reached", out);
  } else {
    report(out);
    out.after(kReportInterval, kReportTimer);
  }
}

void Scheduler::to_worker(WorkerId worker, Body body, Outbox& out) {
  out.send(address_of(worker),
           encode({.incarnation = members_.at(worker).incarnation, .body = std::move(body)}));
}

void Scheduler::to_shards(const Body& body, Outbox& out) {
  const Message message = encode({.body = body});
  for (std::uint32_t shard = 0; shard < job_->layout->shards(); ++shard)
    out.send(address_of(ShardId(shard)), message);
}

void Scheduler::enter(WorkerId worker, State state) {
  auto& member = members_[worker];
  in_state_[static_cast<std::size_t>(member.state)].erase(worker);
  in_state_[static_cast<std::size_t>(state)].insert(worker);
  const auto has_part = [](State one) { return one == State::running || one == State::admitting; };
  taking_part_changed_ |= has_part(member.state) != has_part(state);
  known_.erase(worker);
  member.state = state;
}

std::vector<WorkerId> Scheduler::members_in(std::initializer_list<State> states) const {
  std::vector<WorkerId> found;
  for (const State state : states) {
    const auto& members = in_state_[static_cast<std::size_t>(state)];
    found.insert(found.end(), members.begin(), members.end());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::size_t Scheduler::count_in(std::initializer_list<State> states) const {
  std::size_t count = 0;
  for (const State state : states) count += in_state_[static_cast<std::size_t>(state)].size();
  return count;
}

const std::vector<WorkerId>& Scheduler::taking_part() {
  if (taking_part_changed_) taking_part_ = members_in({State::running, State::admitting});
  taking_part_changed_ = false;
  return taking_part_;
}

void Scheduler::on_envelope(Address from, Envelope& envelope, Outbox& out) {
  if (from.kind == RoleKind::worker && members_.contains(WorkerId(from.index)))
    return on_worker(WorkerId(from.index), envelope, out);
  if (from.kind == RoleKind::shard && from.index < job_->layout->shards())
    return on_shard(from, envelope, out);
  if (from == kHost && std::holds_alternative<msg::Interrupt>(envelope.body))
    return stop(msg::RunEnded::Reason::interrupted, "somebody asked it to stop", out);
  if (const auto* leaves = std::get_if<msg::Leave>(&envelope.body);
      leaves && from == kHost && members_.contains(leaves->worker))
    return leave(leaves->worker, out);
  if (const auto* evaluated = std::get_if<msg::Evaluated>(&envelope.body);
      evaluated && from == kMonitor) {
    if (cut_ && cut_->id == evaluated->cut) cut_.reset();
    const double target = job_->plan.stop.accuracy;
    if (target > 0 && evaluated->accuracy >= target)
      stop(msg::RunEnded::Reason::target_reached,
           concat("reached a test accuracy of ", evaluated->accuracy), out);
    return;
  }
  refuse_malformed(
      from, {}, concat("a ", name_of(envelope.body), " from ", from, " is not for the scheduler"),
      out);
}

void Scheduler::on_worker(WorkerId worker, Envelope& envelope, Outbox& out) {
  auto& member = members_.at(worker);
  auto& body = envelope.body;
  if (std::holds_alternative<msg::Join>(body)) return join(worker, envelope.incarnation, out);
  if (phase_ == Phase::ended) return;                      // what was trained has been said
  if (envelope.incarnation != member.incarnation) return;  // of an earlier life
  if (std::holds_alternative<msg::Refused>(body)) return;
  if (member.state == State::fencing || member.state == State::gone)
    return refuse_evicted(worker, out);
  member.heard = true;
  if (const auto* want = std::get_if<msg::WantLease>(&body)) {
    lease(worker, *want, out);
  } else if (const auto* idle = std::get_if<msg::Idle>(&body)) {
    if (member.state != State::running || idle->start != member.starts) return;
    confirm(worker, idle->clock, out);
    enter(worker, State::idle);
    leases_.skip_all(worker);  // a round may have been cut since it was told that there is no data
    if (!planted(Mutant::waits_for_the_idle)) remove(worker, out);
    data_came_back(out);
    finish_if_done(out);
  } else if (const auto* done = std::get_if<msg::Stopped>(&body)) {
    stopped(worker, done->clock, out);
  } else if (const auto* diverged = std::get_if<msg::Diverged>(&body)) {
    stop(msg::RunEnded::Reason::failed,
         concat("worker ", worker, ": the loss became ",
                std::isnan(diverged->loss) ? "NaN" : "infinite", " in iteration ",
                diverged->iteration, ", first seen at ", diverged->layer,
                "; lower the learning rate (--lr) or the staleness, or look at the data"),
         out);
  } else {
    refuse_malformed(address_of(worker), {},
                     concat("a ", name_of(body), " is not for the scheduler"), out);
  }
}

void Scheduler::on_shard(Address from, Envelope& envelope, Outbox& out) {
  if (const auto* answer = std::get_if<msg::Admitted>(&envelope.body)) {
    admitted(*answer, out);
  } else if (const auto* fence = std::get_if<msg::Fenced>(&envelope.body)) {
    fenced(*fence, out);
  } else if (const auto* vote = std::get_if<msg::CutVote>(&envelope.body)) {
    voted(*vote, out);
  } else if (const auto* closed = std::get_if<msg::RoundClosed>(&envelope.body);
             closed && from == address_of(ShardId(0)) && job_->consistency->drops_late()) {
    close_round(*closed, out);
  } else if (!std::holds_alternative<msg::Refused>(envelope.body)) {
    refuse_malformed(from, {}, concat("a ", name_of(envelope.body), " is not for the scheduler"),
                     out);
  }
}

// ---- data ----

void Scheduler::lease(WorkerId worker, const msg::WantLease& want, Outbox& out) {
  const auto& member = members_.at(worker);
  if (member.state != State::running) return;
  // It has leases for all before that, or was started there.
  if (want.next > farthest(member))
    return refuse_malformed(address_of(worker), want.next,
                            concat("want lease: no lease has come near iteration ", want.next),
                            out);
  confirm(worker, want.clock, out);
  measured(worker, want, out);
  waiting_.erase(worker);
  if (phase_ != Phase::training) return;
  const auto lease = leases_.grant(worker, want.next, taking_part());
  if (!lease && leases_.may_come_back(worker)) {
    // What it has measured counts once.
    waiting_.emplace(worker, msg::WantLease{.next = want.next, .clock = want.clock});
    return;
  }
  if (!lease) {
    if (!planted(Mutant::no_data_not_told)) to_worker(worker, msg::NoData{want.next}, out);
    return;
  }
  out.emit({.kind = Event::Kind::lease_granted,
            .worker = worker,
            .iteration = lease->first_iteration,
            .value = lease->begin,
            .value2 = lease->end,
            .epoch = lease->epoch});
  to_worker(worker, *lease, out);
  start_cut_if_due(out);
}

void Scheduler::measured(WorkerId worker, const msg::WantLease& want, Outbox& out) {
  // No run counts or times what does not fit; if a message does, it counts as much.
  const auto samples =
      static_cast<std::int64_t>(std::min<std::uint64_t>(want.samples, kMostCounted));
  balance_->measured(worker, {want.iterations, samples, want.computed.ns});
  if (!bound_) return;
  auto& time = interval_[worker];
  time.iterations = std::min(time.iterations + want.iterations, kMostCounted);
  time.waited_us = std::min(time.waited_us + want.waited.ns / 1000, kMostCounted);
  time.computed_us = std::min(time.computed_us + want.computed.ns / 1000, kMostCounted);
  adapt(out);
}

void Scheduler::adapt(Outbox& out) {
  std::vector<WorkerTime> times;
  Clock largest;
  for (const WorkerId worker : members_in({State::running})) {
    const auto time = interval_.find(worker);
    if (time == interval_.end() || time->second.iterations == 0) return;
    times.push_back(time->second);
    largest = std::max(largest, members_.at(worker).clock);
  }
  interval_.clear();
  const std::int64_t before = bound_->bound();
  if (const std::int64_t now = bound_->next(times); now != before)
    to_shards(msg::Bound{Iteration(largest.value()), static_cast<std::uint32_t>(now)}, out);
}

void Scheduler::confirm(WorkerId worker, Clock clock, Outbox& out) {
  auto& member = members_.at(worker);
  // A worker may say any clock; none is beyond all leases.
  clock = std::min(clock, Clock(farthest(member).value()));
  member.clock = std::max(member.clock, clock);
  for (const auto& range : leases_.confirm(worker, clock))
    out.emit({.kind = Event::Kind::trained,
              .worker = worker,
              .value = range.begin,
              .value2 = range.end,
              .epoch = range.epoch});
}

void Scheduler::data_came_back(Outbox& out) {
  if (phase_ != Phase::training) return;
  for (const auto& [worker, want] : std::exchange(waiting_, {})) lease(worker, want, out);
  if (!leases_.anything_to_lease()) return;
  for (const WorkerId worker : members_in({State::idle})) admit(worker, out);
}

void Scheduler::emit_returned(WorkerId worker, const SampleRange& range, Outbox& out) {
  out.emit({.kind = Event::Kind::lease_returned,
            .worker = worker,
            .value = range.begin,
            .value2 = range.end,
            .epoch = range.epoch});
}

/// What shard 0 found is made known to all shards, and to those who came too late.
void Scheduler::close_round(const msg::RoundClosed& closed, Outbox& out) {
  // Of an older view: shard 0 has been told of the newer one since, and decides again.
  if (closed.view != view_ || phase_ == Phase::gathering || phase_ == Phase::ended) return;
  if (!leases_.suffice(closed.round, closed.contributors, members_in({State::running}))) return;
  for (const auto& late : leases_.close(closed.round, closed.contributors)) {
    ++late_pushes_;
    emit_returned(late.worker, late.samples, out);
  }
  to_shards(msg::CloseRound{closed.round, closed.contributors, view_}, out);
  const Iteration next = closed.round + 1;
  for (auto& [worker, member] : members_) {
    if (std::binary_search(closed.contributors.begin(), closed.contributors.end(), worker))
      continue;
    if (member.state == State::admitting) member.start = std::max(member.start, next);
    if (member.state != State::running || member.start >= next) continue;
    member.late = next;
    to_worker(worker, msg::Late{next}, out);
  }
  data_came_back(out);
}

// ---- evaluation ----

void Scheduler::start_cut_if_due(Outbox& out) {
  if (job_->plan.evaluate_every <= 0 ||
      static_cast<double>(leases_.samples_leased()) < next_evaluation_)
    return;
  const double step = job_->plan.evaluate_every * static_cast<double>(job_->data.train->size());
  next_evaluation_ = (std::floor(static_cast<double>(leases_.samples_leased()) / step) + 1) * step;
  if (cut_ || !leases_.anything_to_lease())
    return;  // one in flight; and the end is evaluated anyway
  cut_ = CutInFlight{.id = next_cut_++};
  // No lease reaches the horizon, so no worker can have passed it; the shards' votes make sure.
  propose_cut(leases_.horizon(), out);
}

void Scheduler::propose_cut(Iteration iteration, Outbox& out) {
  const bool snapshot = job_->consistency->bound(iteration) == kUnbounded;
  cut_->iteration = iteration;
  cut_->votes_missing = job_->layout->shards();
  cut_->largest = {};
  cut_->refused = false;
  to_shards(msg::Cut{cut_->id, iteration, snapshot}, out);
}

void Scheduler::voted(const msg::CutVote& vote, Outbox& out) {
  if (!cut_ || vote.cut != cut_->id || vote.iteration != cut_->iteration ||
      cut_->votes_missing == 0)
    return;
  cut_->largest = std::max(cut_->largest, vote.largest);
  cut_->refused |= vote.largest >= cut_->iteration;
  if (--cut_->votes_missing == 0 && cut_->refused)
    propose_cut(std::max(cut_->largest + 1, leases_.horizon()), out);
}

// ---- the end ----

void Scheduler::stop(msg::RunEnded::Reason reason, std::string text, Outbox& out) {
  if (phase_ == Phase::stopping || phase_ == Phase::ended) return;
  phase_ = Phase::stopping;
  end_.reason = reason;
  end_.text = std::move(text);
  for (const WorkerId worker :
       members_in({State::absent, State::joined, State::admitting, State::running, State::idle}))
    to_worker(worker, msg::Stop{}, out);
  finish_if_done(out);
}

void Scheduler::finish_if_done(Outbox& out) {
  if (phase_ == Phase::training && leases_.all_trained() && count_in({State::fencing}) == 0)
    return stop(msg::RunEnded::Reason::finished, "all epochs are trained", out);
  if (phase_ != Phase::stopping) return;
  if (count_in({State::stopped, State::gone}) == members_.size()) finish(out);
}

void Scheduler::finish(Outbox& out) {
  phase_ = Phase::ended;
  report(out);
  end_.samples_trained = leases_.samples_trained();
  end_.torn_pushes = torn_pushes_;
  end_.late_pushes = late_pushes_;
  out.send(kMonitor, encode({.body = end_}));
  to_shards(msg::Finish{}, out);
}

std::string Scheduler::describe() const {
  constexpr std::string_view kPhases[] = {"gathering", "training", "stopping", "ended"};
  constexpr std::string_view kStates[] = {"absent", "joined",  "admitting", "running",
                                          "idle",   "fencing", "gone",      "stopped"};
  std::string text = concat("scheduler ", kPhases[static_cast<std::size_t>(phase_)]);
  for (const auto& [worker, member] : members_)
    text += concat(", worker ", worker, ' ', kStates[static_cast<std::size_t>(member.state)]);
  return text;
}

void Scheduler::report(Outbox& out) {
  const auto live = count_in({State::joined, State::admitting, State::running, State::idle});
  const auto bound = static_cast<std::uint32_t>(bound_ ? bound_->bound() : 0);
  out.send(
      kMonitor,
      encode({.body = msg::SchedulerReport{leases_.epoch(), leases_.samples_trained(), torn_pushes_,
                                           static_cast<std::uint32_t>(live), bound}}));
}

}  // namespace leeway
