#include "actors/shard/shard.hpp"

#include <algorithm>
#include <limits>

#include "core/check.hpp"
#include "core/limits.hpp"
#include "core/mutant.hpp"
#include "core/text.hpp"

namespace leeway {
namespace {

constexpr Duration kShardReportInterval = milliseconds(200);

}  // namespace

Shard::Shard(std::shared_ptr<const Job> job, ShardId id)
    : job_(std::move(job)),
      id_(id),
      clocks_(job_->consistency->drops_stragglers()),
      bounds_(job_->consistency->bound({})) {
  const Device device = job_->devices.shard(id_.value());
  for (const auto& part : job_->layout->buckets(id_))
    groups_.push_back(std::make_unique<ParameterBucket>(job_, part, device));
  LW_CHECK(!groups_.empty(), id_);  // make_job sees to it
  siblings_ = find_siblings();
  report_.lags.assign(limits::kLagBins, 0);
}

void Shard::on_start(Outbox& out) {
  out.after(kShardReportInterval, 0);
}

void Shard::on_timer(TimerToken, Outbox& out) {
  if (finished_) return;
  report(out);
  out.after(kShardReportInterval, 0);
}

void Shard::on_envelope(Address from, Envelope& envelope, Outbox& out) {
  auto& body = envelope.body;
  if (auto* pull = std::get_if<msg::Pull>(&body)) {
    handle(from, envelope, *pull, out);
  } else if (auto* push = std::get_if<msg::Push>(&body)) {
    handle(from, envelope, *push, out);
  } else if (from != kScheduler) {
    refuse_malformed(
        from, {},
        concat(address_of(id_), ": a ", name_of(body), " is not for a shard, or not from ", from),
        out);
  } else if (auto* admit = std::get_if<msg::Admit>(&body)) {
    handle(*admit, out);
  } else if (auto* raise = std::get_if<msg::Raise>(&body)) {
    handle(*raise, out);
  } else if (auto* fence = std::get_if<msg::Fence>(&body)) {
    handle(*fence, out);
  } else if (auto* remove = std::get_if<msg::Remove>(&body)) {
    handle(*remove, out);
  } else if (auto* bound = std::get_if<msg::Bound>(&body)) {
    handle(*bound, out);
  } else if (auto* close = std::get_if<msg::CloseRound>(&body)) {
    handle(*close, out);
  } else if (auto* snapshot = std::get_if<msg::Snapshot>(&body)) {
    handle(*snapshot, out);
  } else if (auto* finish = std::get_if<msg::Finish>(&body)) {
    handle(*finish, out);
  } else {
    refuse_malformed(from, {}, concat("a ", name_of(body), " is not for a shard"), out);
  }
}

// ---- pulls ----

void Shard::handle(Address from, const Envelope& envelope, const msg::Pull& pull, Outbox& out) {
  if (from.kind != RoleKind::worker)
    return refuse_malformed(from, pull.iteration, "only workers pull", out);
  const WorkerId worker(from.index);
  if (!clocks_.may_push(worker, envelope.incarnation))
    return refuse(from, envelope.incarnation, msg::Refused::Reason::unknown_worker, pull.iteration,
                  "not admitted here, or evicted", out);
  if (pull.dtype != DType::f32)
    return refuse_malformed(from, pull.iteration,
                            concat("weights are f32 here, not ", name_of(pull.dtype)), out);
  ++report_.pulls;
  const ParkedPull parked{worker, pull, out.now()};
  if (permitted(parked)) return answer(parked, out);
  const std::uint32_t held = parked_of(worker);
  if (held > 0) {
    // A repeat after a broken link takes the place of the first.
    const auto twin = std::find_if(parked_.begin(), parked_.end(), [&](const ParkedPull& other) {
      return other.worker == worker && other.pull.iteration == pull.iteration;
    });
    if (twin != parked_.end()) {
      twin->pull = pull;
      return;
    }
  }
  if (held >= limits::kMaxPullsPerWorker)
    return refuse_malformed(from, pull.iteration, concat("has ", held, " pulls parked already"),
                            out);
  ++report_.parked_pulls;
  out.emit({.kind = Event::Kind::pull_parked,
            .worker = worker,
            .iteration = pull.iteration,
            .value = clocks_.min_clock().value()});
  if (!planted(Mutant::parked_pull_forgotten)) park(parked);
}

void Shard::park(const ParkedPull& parked) {
  const std::size_t index = parked.worker.value();
  if (parked_of_.size() <= index) parked_of_.resize(index + 1);
  ++parked_of_[index];
  parked_.push_back(parked);
}

bool Shard::permitted(WorkerId worker, Iteration iteration, Clock own_clock) const {
  return may_start(iteration, clocks_.min_clock(), common_clock(worker), own_clock,
                   bounds_.of(iteration));
}

bool Shard::permitted(const ParkedPull& parked) const {
  return permitted(parked.worker, parked.pull.iteration, parked.pull.own_clock);
}

void Shard::answer(const ParkedPull& parked, Outbox& out) {
  const auto& participant = *clocks_.find(parked.worker);
  bounds_.answered(parked.pull.iteration);
  out.emit({.kind = Event::Kind::pull_answered,
            .worker = parked.worker,
            .iteration = parked.pull.iteration,
            .value = clocks_.min_clock().value(),
            .value2 = participant.clock.value()});
  auto reply = std::make_shared<Answer>();
  reply->worker = parked.worker;
  reply->incarnation = participant.incarnation;
  reply->weights.iteration = parked.pull.iteration;
  const auto& groups = share_of(parked.worker).groups;
  reply->missing = groups.size();
  for (const std::uint32_t group : groups) {
    groups_[group]->enqueue(ParameterBucket::Capture{
        [this, reply](const std::vector<ParameterBucket::BlockState>& states) {
          for (const auto& state : states) reply->weights.blocks.push_back(state.describe());
          if (--reply->missing == 0) answers_.push_back(reply);
        }});
  }
  for (const std::uint32_t group : groups) run_bucket(group, out);
}

void Shard::release_parked(std::optional<WorkerId> mover, Outbox& out) {
  // The rule asks for min_clock and for the worker's own clock: while min_clock stands, and the
  // bound, only the pulls of the mover, and of those who share a block with it, may go on.
  if (mover && clocks_.min_clock() == swept_at_ && parked_with(*mover) == 0) return;
  swept_at_ = clocks_.min_clock();
  // Answering does not park, so one sweep in order of arrival suffices.
  std::vector<ParkedPull> released;
  unpark_if([&](const ParkedPull& parked) {
    if (!permitted(parked)) return false;
    released.push_back(parked);
    return true;
  });
  for (const auto& parked : released) {
    if (mover && parked.worker != *mover) note_wait(parked, *mover, out.now());
    answer(parked, out);
  }
}

// ---- pushes ----

std::string Shard::misfit(WorkerId worker, const msg::Push& push) const {
  const auto& share = share_of(worker);
  if (push.bucket_count != share.parts.size())
    return concat("bucket_count is ", push.bucket_count, ", this shard has ", share.parts.size(),
                  " parts");
  if (push.kind == msg::Push::Kind::delta) return "deltas are not taken here, send gradients";
  if (!push.rows.empty()) return "sparse pushes are not taken here, send all rows";
  const Clock clock = clocks_.find(worker)->clock;
  if (push.iteration.value() == clock.value() && !permitted(worker, push.iteration, clock)) {
    if (const Clock common = common_clock(worker); common < clock)
      return concat("iteration ", push.iteration,
                    " may not have started: a stage that shares a block with it has pushed ",
                    common);
    return concat("iteration ", push.iteration, " may not have started, min_clock is ",
                  clocks_.min_clock());
  }
  if (push.kind == msg::Push::Kind::empty)
    return push.samples == 0 ? "" : "an empty push has no samples";
  if (push.samples == 0 || push.weight <= 0) return "a gradient needs samples and a weight above 0";
  // The samples of a round are recovered from it: it must be samples / samples of one round.
  if (push.weight > 1 || push.samples / push.weight > std::numeric_limits<std::uint32_t>::max())
    return concat("weight ", push.weight, " is not the share of ", push.samples,
                  " samples in a round");
  const auto& blocks = groups_[share.groups[push.bucket]]->part().blocks;
  if (push.blocks.size() != blocks.size())
    return concat("part ", push.bucket, " has ", blocks.size(), " blocks, not ",
                  push.blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto& data = push.blocks[i];
    const auto floats = job_->layout->block(blocks[i]).floats;
    if (data.block != blocks[i])
      return concat("expected block ", blocks[i], ", found ", data.block);
    if (data.dtype != DType::f32 || data.shape.count() != floats)
      return concat("block ", data.block, " must be ", floats, " x f32, is ", data.shape, " x ",
                    name_of(data.dtype));
  }
  return "";
}

void Shard::handle(Address from, const Envelope& envelope, msg::Push& push, Outbox& out) {
  if (from.kind != RoleKind::worker)
    return refuse_malformed(from, push.iteration, "only workers push", out);
  const WorkerId worker(from.index);
  if (!clocks_.may_push(worker, envelope.incarnation))
    return refuse(from, envelope.incarnation, msg::Refused::Reason::unknown_worker, push.iteration,
                  "not admitted here, or evicted", out);
  if (const auto text = misfit(worker, push); !text.empty())
    return refuse_malformed(from, push.iteration, concat("push: ", text), out);
  ++report_.pushes;
  const std::uint32_t group = share_of(worker).groups[push.bucket];
  const auto& owners = job_->stages->owners(id_, group);
  Contribution contribution{.worker = worker,
                            .incarnation = envelope.incarnation,
                            .iteration = push.iteration,
                            .bucket = push.bucket,
                            .group = group,
                            .weight = push.weight,
                            .samples = push.samples,
                            .first_owner = owners.front() == job_->stages->stage_of(worker),
                            .owners = static_cast<std::uint32_t>(owners.size()),
                            .blocks = std::move(push.blocks)};
  if (push.kind == msg::Push::Kind::empty) contribution.blocks.clear();
  switch (clocks_.accept(worker, push.iteration, push.bucket, push.bucket_count)) {
    case ClockTable::Verdict::accepted:
      return take(std::move(contribution), out);
    case ClockTable::Verdict::gap:
      return refuse(from, envelope.incarnation, msg::Refused::Reason::gap, push.iteration,
                    concat("expected iteration ", clocks_.find(worker)->clock), out);
    case ClockTable::Verdict::repeat:
      break;
  }
  ++report_.repeats;
  out.emit({.kind = Event::Kind::bucket_repeated,
            .worker = worker,
            .iteration = push.iteration,
            .value = push.bucket});
  static const decltype(unapplied_)::mapped_type kNothing;
  const auto waiting = unapplied_.find({worker, envelope.incarnation});
  const auto& pending = waiting == unapplied_.end() ? kNothing : waiting->second;
  const std::pair key(push.iteration, push.bucket);
  const bool unapplied = std::find(pending.begin(), pending.end(), key) != pending.end();
  if (!unapplied || planted(Mutant::acknowledged_too_early)) acknowledge(contribution, true, out);
}

void Shard::take(Contribution contribution, Outbox& out) {
  const WorkerId worker = contribution.worker;
  const Iteration iteration = contribution.iteration;
  const std::uint32_t part = contribution.bucket;
  const bool whole = clocks_.whole(worker, iteration);
  const bool empty = contribution.blocks.empty();
  unapplied_[{worker, contribution.incarnation}].emplace_back(iteration, part);
  if (job_->consistency->by_rounds()) {
    rounds_[iteration].push_back(std::move(contribution));
  } else if (is_shared(contribution.group)) {
    take_tied(std::move(contribution), out);
  } else {
    const std::uint32_t group = contribution.group;
    std::vector<Contribution> alone;
    alone.push_back(std::move(contribution));
    enqueue_update(group, std::move(alone), out);
  }
  if (whole && job_->consistency->drops_stragglers()) {
    whole_.push_back({worker, empty});
    if (closing_) closing_->missing.erase(worker);
    apply_closed_round(out);
    propose_round(out);
  } else if (whole) {
    out.emit({.kind = Event::Kind::clock_moved, .worker = worker, .value = iteration.value() + 1});
    clocks_changed(worker, out);
  }
}

void Shard::apply_complete_rounds(Outbox& out) {
  apply_rounds_below(
      planted(Mutant::round_applied_early) ? clocks_.max_clock() : clocks_.min_clock(), out);
}

void Shard::apply_rounds_below(Clock clock, Outbox& out) {
  if (job_->consistency->drops_stragglers())
    return;  // then a round waits for the scheduler to close it
  while (!rounds_.empty() && rounds_.begin()->first.value() < clock.value()) {
    auto contributions = std::move(rounds_.begin()->second);
    rounds_.erase(rounds_.begin());
    apply_round(std::move(contributions), out);
  }
}

void Shard::apply_round(std::vector<Contribution> contributions, Outbox& out) {
  std::stable_sort(
      contributions.begin(), contributions.end(),
      [](const Contribution& a, const Contribution& b) { return a.worker < b.worker; });
  std::vector<std::vector<Contribution>> by_group(groups_.size());
  for (auto& contribution : contributions)
    by_group[contribution.group].push_back(std::move(contribution));
  for (std::size_t group = 0; group < groups_.size(); ++group)
    if (!by_group[group].empty()) enqueue_update(group, std::move(by_group[group]), out);
}

void Shard::enqueue_update(std::size_t group, std::vector<Contribution> contributions,
                           Outbox& out) {
  ParameterBucket::Update update;
  const Iteration iteration = contributions.front().iteration;
  if (snapshot_) {
    if (iteration >= snapshot_->iteration && !snapshot_->forked[group]) {
      groups_[group]->enqueue(ParameterBucket::Fork{});
      snapshot_->forked[group] = true;
    }
    update.also_shadow = snapshot_->forked[group] && iteration < snapshot_->iteration &&
                         !planted(Mutant::straggling_push_not_in_snapshot);
  }
  for (auto& contribution : contributions) {
    if (contribution.blocks.empty()) {
      acknowledge(contribution, false, out);  // an empty push has nothing to apply
    } else {
      update.contributions.push_back(std::move(contribution));
    }
  }
  if (!update.contributions.empty()) groups_[group]->enqueue(std::move(update));
  run_bucket(group, out);
}

void Shard::run_bucket(std::size_t group, Outbox& out) {
  if (running_.contains(group)) return;
  if (auto work = groups_[group]->advance()) {
    running_[group] = work;
    out.compute(std::move(work));
  }
  while (!answers_.empty()) {
    const auto reply = std::move(answers_.back());
    answers_.pop_back();
    if (clocks_.may_push(reply->worker, reply->incarnation))
      out.send(address_of(reply->worker),
               encode({.incarnation = reply->incarnation, .body = std::move(reply->weights)}));
  }
  send_when_drained(out);
}

std::size_t Shard::group_of(const Work& work) const {
  for (const auto& [group, running] : running_)
    if (running.get() == &work) return group;
  LW_CHECK(false, "work of no group");
}

void Shard::on_part(Work& work, int part, Outbox& out) {
  if (part + 1 < work.parts()) return;
  const std::size_t group = group_of(work);
  running_.erase(group);
  const auto applied = groups_[group]->finish();
  for (const auto lag : applied.version_lags)
    ++report_.lags[std::min(static_cast<std::size_t>(lag), limits::kLagBins - 1)];
  for (const auto& contribution : applied.contributions) acknowledge(contribution, false, out);
  run_bucket(group, out);
}

void Shard::forget_unapplied(const Contribution& contribution) {
  const auto found = unapplied_.find({contribution.worker, contribution.incarnation});
  if (found == unapplied_.end()) return;
  std::erase(found->second, std::pair(contribution.iteration, contribution.bucket));
  // Of a life that goes on, the next push is about to come.
  if (found->second.empty() && !clocks_.may_push(contribution.worker, contribution.incarnation))
    unapplied_.erase(found);
}

void Shard::acknowledge(const Contribution& contribution, bool repeat, Outbox& out) {
  if (!repeat) {
    forget_unapplied(contribution);
    out.emit({.kind = Event::Kind::bucket_applied,
              .worker = contribution.worker,
              .iteration = contribution.iteration,
              .value = contribution.bucket,
              .value2 = contribution.samples,
              .incarnation = contribution.incarnation});
  }
  if (!clocks_.may_push(contribution.worker, contribution.incarnation)) return;
  out.send(address_of(contribution.worker),
           encode({.incarnation = contribution.incarnation,
                   .body = msg::Pushed{contribution.iteration, contribution.bucket,
                                       msg::Pushed::Durability::applied, repeat}}));
}

}  // namespace leeway
