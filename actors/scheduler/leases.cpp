#include "actors/scheduler/leases.hpp"

#include <algorithm>
#include <limits>

#include "checkpoint/store.hpp"
#include "core/mutant.hpp"
#include "plan/epochs.hpp"
#include "plan/local_steps.hpp"

namespace leeway {
namespace {

/// No run has as many samples; a message that claims more counts as this many.
constexpr std::uint64_t kMostSamples = std::uint64_t{1} << 60;

LeaseBook::Limits limits_of(const Job& job) {
  const Plan& plan = job.plan;
  LeaseBook::Limits limits;
  limits.data_size = job.data.train->size();
  if (plan.stop.epochs > 0)
    limits.total_samples = samples_of_epochs(plan.stop.epochs, limits.data_size);
  limits.total_iterations = plan.stop.iterations;
  limits.batch = static_cast<std::uint32_t>(iteration_samples(plan));
  // An iteration of local steps is long, so that a worker with several would end the epoch late.
  const std::uint32_t iterations = has_local_steps(plan) ? 1 : 8;
  limits.lease_size = plan.lease_size > 0 ? plan.lease_size : iterations * limits.batch;
  limits.by_rounds = job.consistency->by_rounds();
  limits.round_size = job.consistency->round_size();
  limits.equal_pushes = has_local_steps(plan);
  if (job.split) limits.data_shares = job.split->begins;
  limits.workers_per_share = job.stages->count();
  limits.participation = plan.participation;
  limits.seed = plan.seed;
  return limits;
}

SampleSupply::State supply_of(const checkpoint::Supply& stored) {
  SampleSupply::State state{.fresh = stored.fresh_of_parts,
                            .samples_leased = static_cast<std::uint64_t>(stored.fresh),
                            .iterations_leased = stored.iterations,
                            .next_lease = stored.next_lease};
  if (state.fresh.empty()) state.fresh = {stored.fresh};
  if (planted(Mutant::epochs_restart)) state.fresh.clear();
  for (const auto& range : stored.returned) {
    state.returned.push_back({{range.epoch, range.begin, range.end}, {}});
    state.samples_leased -= static_cast<std::uint64_t>(range.end - range.begin);
  }
  return state;
}

/// `T`: event::Trained or event::LeaseReturned.
template <class T>
void emit(WorkerId lead, const SampleRange& range, Outbox& out) {
  out.emit(T{.worker = lead, .epoch = range.epoch, .begin = range.begin, .end = range.end});
}

}  // namespace

Leases::Leases(const Job& job, Roster& roster, const Mailer& mailer)
    : roster_(roster),
      mailer_(mailer),
      by_rounds_(job.consistency->by_rounds()),
      balance_(make_balance(job.plan)),
      book_(limits_of(job), balance_),
      stages_(job.stages) {
  if (!job.resumed) return;
  const auto& from = job.resumed->manifest.scheduler;
  book_.resume(supply_of(from.supply), job.first_iteration());
  for (const auto& pace : from.paces)
    if (pace.pipeline < stages_->pipelines())
      balance_->measured(stages_->lead_of_pipeline(pace.pipeline),
                         {pace.iterations, pace.samples, pace.computed_ns});
}

std::vector<checkpoint::Pace> Leases::paces() const {
  std::vector<checkpoint::Pace> all;
  for (const auto& [lead, pace] : balance_->paces())
    all.push_back({stages_->pipeline_of(lead), pace.iterations, pace.samples, pace.computed_ns});
  return all;
}

Iteration Leases::first_unleased(WorkerId lead) const {
  if (by_rounds_) return book_.horizon();
  const Member& member = roster_.at(lead);
  return std::max({book_.horizon(lead), member.start, Iteration(member.clock.value())});
}

void Leases::measured(WorkerId lead, const msg::WantLease& want) {
  const auto samples = static_cast<std::int64_t>(std::min(want.samples, kMostSamples));
  balance_->measured(lead, {want.iterations, samples, want.computed.ns});
}

bool Leases::answer(WorkerId lead, const msg::WantLease& want, Outbox& out) {
  auto lease = book_.grant(lead, want.next, roster_.taking_part());
  if (!lease && book_.may_come_back(lead)) {
    // Without what it has measured, which counts once.
    waiting_.emplace(lead, msg::WantLease{.next = want.next, .clock = want.clock});
    return false;
  }
  if (!lease) {
    if (!planted(Mutant::no_data_not_sent)) mailer_.to_worker(lead, msg::NoData{want.next}, out);
    return false;
  }
  out.emit(event::LeaseGranted{.worker = lead,
                               .iteration = lease->first_iteration,
                               .epoch = lease->epoch,
                               .begin = lease->begin,
                               .end = lease->end});
  auto& [last, flushes] = last_[lead];
  if (last != lease->first_iteration)  // otherwise it is sent again
    flushes = flush_ && lease->first_iteration >= flush_->first &&
              lease->first_iteration < flush_->second;
  last = lease->first_iteration;
  lease->flushes = flushes;
  if (!lease->flushes) encoded_below_[lead] = lease->first_iteration + lease->iterations();
  mailer_.to_worker(lead, *lease, out);
  return true;
}

void Leases::begin_flush() {
  flush_ = {by_rounds_ ? book_.horizon() : Iteration(),
            Iteration(std::numeric_limits<std::int64_t>::max())};
}

void Leases::end_flush() {
  if (flush_) flush_->second = by_rounds_ ? book_.horizon() : Iteration();
}

bool Leases::is_flushed(WorkerId lead) const {
  const auto found = encoded_below_.find(lead);
  return found == encoded_below_.end() || found->second < first_unleased(lead);
}

void Leases::confirm(WorkerId lead, Clock clock, Outbox& out) {
  auto& member = roster_.at(lead);
  // A worker may claim any clock; none is beyond all leases.
  clock = std::min(clock, Clock(farthest(member).value()));
  member.clock = std::max(member.clock, clock);
  for (const auto& range : book_.confirm(lead, clock)) emit<event::Trained>(lead, range, out);
}

std::uint64_t Leases::take_back(WorkerId lead, const PartialIterations& partial, Outbox& out) {
  withdraw(lead);
  const auto taken = book_.take_back(lead, partial);
  for (const auto& range : taken.trained) emit<event::Trained>(lead, range, out);
  std::uint64_t returned = 0;
  for (const auto& range : taken.back) {
    returned += static_cast<std::uint64_t>(range.count());
    emit<event::LeaseReturned>(lead, range, out);
  }
  return returned;
}

bool Leases::suffices(Iteration round, const std::vector<WorkerId>& contributors) const {
  return book_.suffice(round, contributors, roster_.in({Member::State::running}));
}

std::uint64_t Leases::close(Iteration round, const std::vector<WorkerId>& contributors,
                            Outbox& out) {
  std::uint64_t dropped = 0;
  for (const auto& share : book_.close(round, contributors)) {
    emit<event::LeaseReturned>(share.worker, share.samples, out);
    ++dropped;
  }
  return dropped;
}

}  // namespace leeway
