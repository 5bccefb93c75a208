#include "sim/checkers/samples.hpp"

#include <algorithm>
#include <cmath>

#include "sim/checkers/resumed.hpp"

namespace leeway::sim {

SampleChecker::SampleChecker(std::shared_ptr<const Job> job)
    : Checker("each sample is trained exactly once per epoch (6)", Damage::samples),
      job_(std::move(job)),
      leased_(job_->plan.workers),
      trained_(job_->data.train->size()) {
  for (std::uint32_t shard = 0; shard < job_->plan.shards; ++shard) {
    auto& first = first_bucket_.emplace_back();
    for (std::uint32_t stage = 0; stage < job_->stages->count(); ++stage) {
      first.push_back(buckets_.size());
      const auto& buckets = job_->stages->share(stage).at[shard].buckets;
      for (std::uint32_t index = 0; index < buckets.size(); ++index)
        buckets_.push_back({ShardId(shard), stage, index, SampleSet(job_->data.train->size())});
    }
  }
  if (!job_->resumed) return;
  insert_resumed(*job_, trained_);
  for (StageBucket& bucket : buckets_) bucket.applied = trained_;
}

// ---- leases ----

void SampleChecker::on_sent(Instant, const Letter& letter) {
  if (letter.from() != kScheduler || letter.to().kind != RoleKind::worker) return;
  const WorkerId worker(letter.to().index);
  if (const auto* start = letter.as<msg::Start>())
    started(worker, letter.open()->session, start->iteration);
  else if (const auto* lease = letter.as<msg::Lease>())
    leased(worker, *lease);
}

void SampleChecker::started(WorkerId worker, Session session, Iteration iteration) {
  if (job_->stages->lead_of(worker) != worker) return;
  auto& all = leased_[worker.value()];
  if (!all.empty() && all.back().session == session) return;  // a repeat
  std::erase_if(all, [](const Leased& one) { return one.leases.empty(); });
  all.push_back({session, iteration, {}});
}

void SampleChecker::leased(WorkerId lead, const msg::Lease& lease) {
  auto& all = leased_[lead.value()];
  if (all.empty())
    violated({kScheduler, address_of(lead)}, "iteration ", lease.first_iteration,
             " is leased before a start");
  if (lease.first_iteration < all.back().beyond) return;  // a repeat
  const std::int64_t iterations = lease.iterations();
  all.back().beyond = lease.first_iteration + iterations;
  all.back().leases.push_back({lease.first_iteration, all.back().beyond, lease.epoch, lease.begin,
                               lease.end, lease.batch,
                               iterations * static_cast<std::int64_t>(buckets_.size())});
}

SampleChecker::Lease* SampleChecker::find(WorkerId worker, Session session, Iteration iteration) {
  for (Leased& leased : leased_[job_->stages->lead_of(worker).value()]) {
    if (leased.session != session) continue;
    for (Lease& lease : leased.leases)
      if (lease.first <= iteration && iteration < lease.beyond) return &lease;
  }
  return nullptr;
}

void SampleChecker::count(WorkerId worker, Lease& lease, std::size_t buckets) {
  lease.missing -= static_cast<std::int64_t>(buckets);
  if (lease.missing > 0) return;
  for (Leased& leased : leased_[job_->stages->lead_of(worker).value()])
    std::erase_if(leased.leases, [](const Lease& one) { return one.missing <= 0; });
}

// ---- samples applied and trained ----

void SampleChecker::on_event(Instant, Address actor, const Event& event) {
  if (const auto* applied = event.as<event::BucketApplied>()) {
    check_applied(actor, *applied);
  } else if (const auto* dropped = event.as<event::PushDropped>()) {
    if (Lease* lease = find(dropped->worker, dropped->session, dropped->iteration))
      count(dropped->worker, *lease,
            job_->stages->share_of(dropped->worker).at[actor.index].buckets.size());
  } else if (const auto* trained = event.as<event::Trained>()) {
    check_trained(actor, *trained);
  } else if (event.as<event::PartialPush>()) {
    partial_ = true;
  }
}

void SampleChecker::check_trained(Address actor, const event::Trained& trained) {
  const auto& [worker, epoch, begin, end] = trained;
  const std::vector<Address> actors = {actor, address_of(worker)};
  const double epochs = job_->plan.stop.epochs;
  if (begin < 0 || begin > end || end > job_->data.train->size() ||
      (epochs > 0 && static_cast<double>(epoch.value()) >= std::ceil(epochs)))
    violated(actors, "positions ", begin, " to ", end, " of epoch ", epoch,
             " trained, but do not exist");
  if (const auto twice = trained_.insert(epoch, begin, end))
    violated(actors, "position ", *twice, " of epoch ", epoch, " trained again");
}

SampleChecker::StageBucket& SampleChecker::bucket_of(Address shard, WorkerId worker,
                                                     std::uint32_t bucket) {
  const std::uint32_t stage = job_->stages->stage_of(worker);
  const auto count = job_->stages->share(stage).at[shard.index].buckets.size();
  if (bucket >= count)
    violated({shard, address_of(worker)}, "bucket ", bucket, " applied; the stage has ", count);
  return buckets_[first_bucket_[shard.index][stage] + bucket];
}

void SampleChecker::check_applied(Address actor, const event::BucketApplied& applied) {
  const Iteration iteration = applied.iteration;
  const std::vector<Address> actors = {actor, address_of(applied.worker)};
  StageBucket& bucket = bucket_of(actor, applied.worker, applied.bucket);
  Lease* const lease = find(applied.worker, applied.session, iteration);
  if (!lease)
    violated(actors, name_of(bucket), " applied for iteration ", iteration, ", session ",
             applied.session, ", which was not leased");
  const std::int64_t begin =
      lease->begin + (iteration.value() - lease->first.value()) * lease->batch;
  const std::int64_t end = std::min(begin + lease->batch, lease->end);
  // An empty push means that the bucket has these samples; the end of the run checks that.
  if (applied.samples != 0 && applied.samples != end - begin)
    violated(actors, name_of(bucket), " got ", applied.samples, " samples of iteration ", iteration,
             ", not ", end - begin);
  if (applied.samples != 0)
    if (const auto twice = bucket.applied.insert(lease->epoch, begin, end))
      violated(actors, name_of(bucket), " got position ", *twice, " of epoch ", lease->epoch,
               " again, in iteration ", iteration);
  // A loop of the user's leaves out keys that have no gradient for its samples.
  if (applied.samples == 0 && job_->user_loops)
    (void)bucket.applied.insert(lease->epoch, begin, end);
  count(applied.worker, *lease, 1);
}

std::string SampleChecker::name_of(const StageBucket& bucket) const {
  const std::string name = concat("bucket ", bucket.index);
  return job_->stages->piped() ? concat(name, " of stage ", bucket.stage) : name;
}

void SampleChecker::on_run_ended(const RunTotals& totals) {
  const auto& end = totals.end;
  if (end.samples_trained != trained_.count())
    violated({kScheduler}, "the scheduler counts ", end.samples_trained,
             " trained samples; its events name ", trained_.count());
  if (end.reason == msg::RunEnded::Reason::failed) return;
  const auto& stop = job_->plan.stop;
  const auto wanted = static_cast<std::uint64_t>(std::max<std::int64_t>(
      1, std::llround(stop.epochs * static_cast<double>(job_->data.train->size()))));
  const bool by_epochs = end.reason == msg::RunEnded::Reason::finished && stop.epochs > 0 &&
                         stop.iterations == 0 && stop.seconds == 0;
  // No sample was trained twice, so an equal number means that all were trained.
  if (by_epochs && trained_.count() != wanted)
    violated({kScheduler}, trained_.count(), " samples were trained, not ", wanted);
  for (const StageBucket& bucket : buckets_) {
    if (const auto missing = bucket.applied.first_missing_of(trained_))
      violated({address_of(bucket.shard)}, name_of(bucket), " did not get position ",
               missing->second, " of epoch ", missing->first, ", which was trained");
    // A run that stops early does not complete its partial iterations.
    if ((by_epochs || !partial_) && bucket.applied.count() != trained_.count())
      violated({address_of(bucket.shard)}, name_of(bucket), " got ", bucket.applied.count(),
               " samples, but ", trained_.count(), " were trained");
  }
}

}  // namespace leeway::sim
