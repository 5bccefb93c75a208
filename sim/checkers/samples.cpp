#include "sim/checkers/samples.hpp"

#include <algorithm>
#include <cmath>

namespace leeway::sim {

SampleChecker::SampleChecker(std::shared_ptr<const Job> job)
    : Checker("each sample is trained exactly once per epoch (6)"),
      job_(std::move(job)),
      starts_(job_->plan.workers),
      leased_(job_->plan.workers),
      trained_(job_->data.train->size()) {
  for (std::uint32_t shard = 0; shard < job_->plan.shards; ++shard) {
    auto& first = first_part_.emplace_back();
    for (std::uint32_t stage = 0; stage < job_->stages->count(); ++stage) {
      first.push_back(parts_.size());
      const auto& parts = job_->stages->share(stage).at[shard].buckets;
      for (std::uint32_t index = 0; index < parts.size(); ++index)
        parts_.push_back({ShardId(shard), stage, index, SampleSet(job_->data.train->size())});
    }
  }
}

// ---- which samples an iteration has ----

void SampleChecker::on_sent(Instant, const Letter& letter) {
  if (letter.from() != kScheduler || letter.to().kind != RoleKind::worker) return;
  const WorkerId worker(letter.to().index);
  if (const auto* start = letter.as<msg::Start>())
    started(worker, letter.open()->incarnation, *start);
  else if (const auto* lease = letter.as<msg::Lease>())
    leased(worker, *lease);
}

void SampleChecker::started(WorkerId worker, Incarnation incarnation, const msg::Start& start) {
  auto& starts = starts_[worker.value()];
  if (!starts.empty() && starts.back().number == start.number) return;  // said again
  starts.push_back({start.number, incarnation, start.iteration});
  if (job_->stages->lead_of(worker) != worker) return;
  auto& all = leased_[worker.value()];
  std::erase_if(all, [](const Leased& one) { return one.leases.empty(); });
  all.push_back({start.number, start.iteration, {}});
}

void SampleChecker::leased(WorkerId lead, const msg::Lease& lease) {
  auto& all = leased_[lead.value()];
  if (all.empty())
    violated({kScheduler, address_of(lead)}, "iteration ", lease.first_iteration,
             " is leased before a start");
  if (lease.first_iteration < all.back().beyond) return;  // said again
  const std::int64_t iterations = lease.iterations();
  all.back().beyond = lease.first_iteration + iterations;
  all.back().leases.push_back({lease.first_iteration, all.back().beyond, lease.epoch, lease.begin,
                               lease.end, lease.batch,
                               iterations * static_cast<std::int64_t>(parts_.size())});
}

SampleChecker::Lease* SampleChecker::find(WorkerId worker, Incarnation incarnation,
                                          Iteration iteration) {
  const auto& starts = starts_[worker.value()];
  const auto start = std::find_if(starts.rbegin(), starts.rend(), [&](const Start& one) {
    return one.incarnation == incarnation && one.from <= iteration;
  });
  if (start == starts.rend()) return nullptr;
  for (Leased& leased : leased_[job_->stages->lead_of(worker).value()]) {
    if (leased.start != start->number) continue;
    for (Lease& lease : leased.leases)
      if (lease.first <= iteration && iteration < lease.beyond) return &lease;
  }
  return nullptr;
}

void SampleChecker::count(WorkerId worker, Lease& lease, std::size_t parts) {
  lease.missing -= static_cast<std::int64_t>(parts);
  if (lease.missing > 0) return;
  for (Leased& leased : leased_[job_->stages->lead_of(worker).value()])
    std::erase_if(leased.leases, [](const Lease& one) { return one.missing <= 0; });
}

// ---- what becomes of them ----

void SampleChecker::on_event(Instant, Address actor, const Event& event) {
  switch (event.kind) {
    case Event::Kind::bucket_applied:
      return applied(actor, event);
    case Event::Kind::push_dropped:  // all of it
      if (Lease* lease = find(event.worker, event.incarnation, event.iteration))
        count(event.worker, *lease,
              job_->stages->share_of(event.worker).at[actor.index].buckets.size());
      return;
    case Event::Kind::partial:
      partial_ = true;
      return;
    case Event::Kind::trained:
      return trained(actor, event);
    default:
      return;
  }
}

void SampleChecker::trained(Address actor, const Event& event) {
  const std::vector<Address> actors = {actor, address_of(event.worker)};
  const double epochs = job_->plan.stop.epochs;
  if (event.value < 0 || event.value > event.value2 || event.value2 > job_->data.train->size() ||
      (epochs > 0 && static_cast<double>(event.epoch.value()) >= std::ceil(epochs)))
    violated(actors, "positions ", event.value, " to ", event.value2, " of epoch ", event.epoch,
             " trained, which there are not");
  if (const auto twice = trained_.insert(event.epoch, event.value, event.value2))
    violated(actors, "position ", *twice, " of epoch ", event.epoch, " trained again");
}

SampleChecker::Part& SampleChecker::part_of(Address shard, WorkerId worker, std::int64_t part) {
  const std::uint32_t stage = job_->stages->stage_of(worker);
  const auto owed = job_->stages->share(stage).at[shard.index].buckets.size();
  if (part < 0 || static_cast<std::size_t>(part) >= owed)
    violated({shard, address_of(worker)}, "part ", part, " applied; there are ", owed);
  return parts_[first_part_[shard.index][stage] + static_cast<std::size_t>(part)];
}

void SampleChecker::applied(Address actor, const Event& event) {
  const std::vector<Address> actors = {actor, address_of(event.worker)};
  Part& part = part_of(actor, event.worker, event.value);
  Lease* const lease = find(event.worker, event.incarnation, event.iteration);
  if (!lease)
    violated(actors, name_of(part), " applied for iteration ", event.iteration, ", incarnation ",
             event.incarnation, ", which was not leased");
  const std::int64_t begin =
      lease->begin + (event.iteration.value() - lease->first.value()) * lease->batch;
  const std::int64_t end = std::min(begin + lease->batch, lease->end);
  // None, where it has them already: that it has is seen at the end.
  if (event.value2 != 0 && event.value2 != end - begin)
    violated(actors, name_of(part), " was given ", event.value2, " samples of iteration ",
             event.iteration, "; leased were ", end - begin);
  if (event.value2 != 0)
    if (const auto twice = part.applied.insert(lease->epoch, begin, end))
      violated(actors, name_of(part), " was given position ", *twice, " of epoch ", lease->epoch,
               " again, in iteration ", event.iteration);
  count(event.worker, *lease, 1);
}

std::string SampleChecker::name_of(const Part& part) const {
  const std::string name = concat("part ", part.index);
  return job_->stages->piped() ? concat(name, " of stage ", part.stage) : name;
}

void SampleChecker::on_run_ended(const RunTotals& totals) {
  const auto& end = totals.end;
  if (end.samples_trained != trained_.count())
    violated({kScheduler}, "it counts ", end.samples_trained, " samples, and has said that ",
             trained_.count(), " were trained");
  if (end.reason == msg::RunEnded::Reason::failed) return;
  const auto& stop = job_->plan.stop;
  const auto wanted = static_cast<std::uint64_t>(std::max<std::int64_t>(
      1, std::llround(stop.epochs * static_cast<double>(job_->data.train->size()))));
  const bool by_epochs = end.reason == msg::RunEnded::Reason::finished && stop.epochs > 0 &&
                         stop.iterations == 0 && stop.seconds == 0;
  // None came twice, so the number says that all came.
  if (by_epochs && trained_.count() != wanted)
    violated({kScheduler}, trained_.count(), " samples were trained, and not ", wanted);
  for (const Part& part : parts_) {
    if (const auto missing = part.applied.first_missing_of(trained_))
      violated({address_of(part.shard)}, name_of(part), " was not given position ", missing->second,
               " of epoch ", missing->first, ", which was trained");
    // What is partial when the run stops is completed no more.
    if ((by_epochs || !partial_) && part.applied.count() != trained_.count())
      violated({address_of(part.shard)}, name_of(part), " was given ", part.applied.count(),
               " samples; trained were ", trained_.count());
  }
}

}  // namespace leeway::sim
