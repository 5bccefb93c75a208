#include "actors/scheduler/scheduler.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/text.hpp"
#include "plan/fault_queries.hpp"

namespace leeway {
namespace {

constexpr Duration kSchedulerReportInterval = milliseconds(200);
constexpr TimerToken kReportTimer = 1;
constexpr TimerToken kTimeLimit = 2;

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
  const Stages& stages = *job_->stages;
  for (std::uint32_t stage = 0; stage < stages.count(); ++stage)
    pairs_ += stages.share(stage).shards.size();
  for (std::uint32_t index = 0; index < stages.pipelines(); ++index) {
    const WorkerId lead(index * stages.count());
    auto& member = members_[lead];
    member.stages.resize(stages.count());
    const auto is_later = [&](WorkerId worker) {
      return later.contains(worker) || joins_later(job_->faults, address_of(worker));
    };
    const auto workers = workers_of(lead);
    const bool comes_later = std::any_of(workers.begin(), workers.end(), is_later);
    // Those that join later are like ones that have gone, before their first life.
    enter(lead, comes_later ? State::gone : State::absent);
    if (!comes_later) continue;
    for (const WorkerId worker : workers) {
      stage_of(worker).incarnation = Incarnation(0);
      stage_of(worker).ended = is_later(worker);
    }
  }
}

void Scheduler::on_start(Outbox& out) {
  for (std::uint32_t worker = 0; worker < job_->plan.workers; ++worker)
    out.watch(address_of(WorkerId(worker)));
  for (std::uint32_t shard = 0; shard < job_->layout->shards(); ++shard)
    out.watch(address_of(ShardId(shard)));
  out.after(kSchedulerReportInterval, kReportTimer);
  if (job_->plan.stop.seconds > 0)
    out.after(nanoseconds(std::llround(job_->plan.stop.seconds * 1e9)), kTimeLimit);
}

void Scheduler::on_timer(TimerToken token, Outbox& out) {
  if (phase_ == Phase::ended) return;
  if (token == kTimeLimit) {
    stop(msg::RunEnded::Reason::finished, "the time limit was reached", out);
  } else {
    report(out);
    out.after(kSchedulerReportInterval, kReportTimer);
  }
}

std::vector<WorkerId> Scheduler::workers_of(WorkerId lead) const {
  std::vector<WorkerId> workers;
  for (std::uint32_t stage = 0; stage < job_->stages->count(); ++stage)
    workers.push_back(job_->stages->worker(lead, stage));
  return workers;
}

void Scheduler::to_worker(WorkerId worker, Body body, Outbox& out) {
  out.send(address_of(worker),
           encode({.incarnation = stage_of(worker).incarnation, .body = std::move(body)}));
}

void Scheduler::to_stages(WorkerId lead, const Body& body, Outbox& out) {
  for (const WorkerId worker : workers_of(lead)) to_worker(worker, body, out);
}

void Scheduler::to_shards(const Body& body, Outbox& out) {
  const Message message = encode({.body = body});
  for (std::uint32_t shard = 0; shard < job_->layout->shards(); ++shard)
    out.send(address_of(ShardId(shard)), message);
}

void Scheduler::to_shards_of(WorkerId worker, const Body& body, Outbox& out) {
  const Message message = encode({.body = body});
  for (const ShardId shard : job_->stages->share_of(worker).shards)
    out.send(address_of(shard), message);
}

void Scheduler::enter(WorkerId lead, State state) {
  auto& member = members_.at(lead);
  in_state_[static_cast<std::size_t>(member.state)].erase(lead);
  in_state_[static_cast<std::size_t>(state)].insert(lead);
  const auto has_part = [](State one) { return one == State::running || one == State::admitting; };
  taking_part_changed_ |= has_part(member.state) != has_part(state);
  known_.erase(lead);
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
  if (from.kind == RoleKind::worker && knows(WorkerId(from.index)))
    return on_worker(WorkerId(from.index), envelope, out);
  if (from.kind == RoleKind::shard && from.index < job_->layout->shards())
    return on_shard(from, envelope, out);
  if (from == kHost && std::holds_alternative<msg::Interrupt>(envelope.body))
    return stop(msg::RunEnded::Reason::interrupted, "somebody asked it to stop", out);
  if (const auto* leaves = std::get_if<msg::Leave>(&envelope.body);
      leaves && from == kHost && knows(leaves->worker))
    return leave(leaves->worker, out);
  if (const auto* evaluated = std::get_if<msg::Evaluated>(&envelope.body);
      evaluated && from == kMonitor) {
    if (snapshot_ && snapshot_->id == evaluated->snapshot) snapshot_.reset();
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
  if (std::holds_alternative<msg::Join>(envelope.body))
    return join(worker, envelope.incarnation, out);
  auto& stage = stage_of(worker);
  if (phase_ == Phase::ended) return;                     // what was trained has been said
  if (envelope.incarnation != stage.incarnation) return;  // of an earlier life
  if (std::holds_alternative<msg::Refused>(envelope.body)) return;
  const State state = member_of(worker).state;
  if (state == State::fencing || state == State::gone) {
    // One that waits for the other stages has nothing to say, but that it has stopped.
    if (!stage.joined) refuse_evicted(worker, out);
    return;
  }
  const auto* idle = std::get_if<msg::Idle>(&envelope.body);
  stage.heard |= !idle || idle->start == member_of(worker).starts;
  on_member(worker, envelope.body, out);
}

void Scheduler::on_member(WorkerId worker, Body& body, Outbox& out) {
  if (const auto* want = std::get_if<msg::WantLease>(&body)) {
    const std::uint32_t stage = job_->stages->stage_of(worker);
    if (stage > 0)
      return refuse_malformed(address_of(worker), want->next,
                              concat("want lease: worker ", worker, " is stage ", stage,
                                     " of its pipeline, and the first stage asks for all"),
                              out);
    lease(worker, *want, out);
  } else if (const auto* said = std::get_if<msg::Idle>(&body)) {
    idle(worker, *said, out);
  } else if (const auto* done = std::get_if<msg::Stopped>(&body)) {
    stopped(worker, *done, out);
  } else if (const auto* diverged = std::get_if<msg::Diverged>(&body)) {
    stop(msg::RunEnded::Reason::failed,
         concat(job_->stages->name_of(worker), ": the loss became ",
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
    fenced(ShardId(from.index), *fence, out);
  } else if (const auto* vote = std::get_if<msg::SnapshotVote>(&envelope.body)) {
    voted(*vote, out);
  } else if (const auto* closed = std::get_if<msg::RoundClosed>(&envelope.body);
             closed && from == address_of(ShardId(0)) && job_->consistency->drops_stragglers()) {
    close_round(*closed, out);
  } else if (!std::holds_alternative<msg::Refused>(envelope.body)) {
    refuse_malformed(from, {}, concat("a ", name_of(envelope.body), " is not for the scheduler"),
                     out);
  }
}

// ---- the end ----

void Scheduler::stop(msg::RunEnded::Reason reason, std::string text, Outbox& out) {
  if (phase_ == Phase::stopping || phase_ == Phase::ended) return;
  phase_ = Phase::stopping;
  end_.reason = reason;
  end_.text = std::move(text);
  for (const auto& [lead, member] : members_) {
    if (member.state == State::fencing || member.state == State::stopped) continue;
    // Of a pipeline that is gone, those who wait for the others.
    for (const WorkerId worker : workers_of(lead))
      if (member.state != State::gone || stage_of(worker).joined)
        to_worker(worker, msg::Stop{}, out);
  }
  finish_if_done(out);
}

void Scheduler::finish_if_done(Outbox& out) {
  if (phase_ == Phase::training && leases_.all_trained() && count_in({State::fencing}) == 0)
    return stop(msg::RunEnded::Reason::finished,
                leases_.at_last_iteration()
                    ? concat("all ", job_->plan.stop.iterations, " iterations are trained")
                    : "all epochs are trained",
                out);
  if (phase_ != Phase::stopping) return;
  if (count_in({State::stopped, State::gone}) == members_.size()) finish(out);
}

void Scheduler::finish(Outbox& out) {
  phase_ = Phase::ended;
  report(out);
  end_.samples_trained = leases_.samples_trained();
  end_.partial_pushes = partial_pushes_;
  end_.dropped_pushes = dropped_pushes_;
  out.send(kMonitor, encode({.body = end_}));
  to_shards(msg::Finish{}, out);
}

std::string Scheduler::describe() const {
  constexpr std::string_view kPhases[] = {"gathering", "training", "stopping", "ended"};
  constexpr std::string_view kStates[] = {"absent", "joined",  "admitting", "running",
                                          "idle",   "fencing", "gone",      "stopped"};
  std::string text = concat("scheduler ", kPhases[static_cast<std::size_t>(phase_)]);
  for (const auto& [lead, member] : members_) {
    text += concat(", worker ", lead, ' ', kStates[static_cast<std::size_t>(member.state)]);
    if (!job_->stages->piped()) continue;
    for (const WorkerId worker : workers_of(lead)) {
      const auto& stage = member.stages[job_->stages->stage_of(worker)];
      const bool waits = stage.joined && !member.has_started();
      text += concat(worker == lead ? " (stages" : "", worker == lead ? " " : ", ",
                     stage.ended     ? "ended"
                     : stage.stopped ? "stopped"
                     : stage.idle    ? "idle"
                     : waits         ? "waits"
                                     : "there");
    }
    text += ')';
  }
  return text;
}

void Scheduler::report(Outbox& out) {
  const auto live = count_in({State::joined, State::admitting, State::running, State::idle}) *
                    job_->stages->count();
  const auto bound = static_cast<std::uint32_t>(bound_ ? bound_->bound() : 0);
  out.send(kMonitor, encode({.body = msg::SchedulerReport{
                                 leases_.epoch(), leases_.samples_trained(), partial_pushes_,
                                 static_cast<std::uint32_t>(live), bound}}));
}

}  // namespace leeway
