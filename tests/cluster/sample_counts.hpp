#pragma once
// SampleCounts: checks by events that a run over several nodes has trained each sample once. Hosts
// that see all messages use SampleChecker.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>

#include "actors/job.hpp"
#include "sim/checkers/checker.hpp"
#include "sim/checkers/sample_set.hpp"

namespace leeway::test {

/// Checks that the scheduler counts each position of an epoch once, and that shards have applied
/// each bucket of each stage for that number of samples. If a run stops early, some buckets may
/// also have the samples of partial iterations, which were leased but do not count as trained.
class SampleCounts final : public sim::Checker {
 public:
  explicit SampleCounts(std::shared_ptr<const Job> job)
      : Checker("each sample is trained exactly once per epoch (6)"),
        job_(std::move(job)),
        trained_(job_->data.train->size()) {}

  void on_event(Instant, Address actor, const Event& event) override {
    if (const auto* applied = event.as<event::BucketApplied>())
      applied_[{actor, job_->stages->stage_of(applied->worker), applied->bucket}] +=
          applied->samples;
    if (const auto* lease = event.as<event::LeaseGranted>(); lease && lease->begin < lease->end)
      leased_ = std::max(leased_, lease->epoch.value() * job_->data.train->size() + lease->end);
    if (event.as<event::PartialPush>()) partial_ = true;
    const auto* range = event.as<event::Trained>();
    if (!range) return;
    if (const auto twice = trained_.insert(range->epoch, range->begin, range->end))
      violated({actor, address_of(range->worker)}, "position ", *twice, " of epoch ", range->epoch,
               " trained again");
  }

  void on_run_ended(const RunTotals& totals) override {
    if (totals.end.samples_trained != trained_.count())
      violated({kScheduler}, "counts ", totals.end.samples_trained,
               " trained samples, but its events have ", trained_.count());
    if (totals.end.reason == msg::RunEnded::Reason::failed) return;
    // Partial pushes are not completed after the run stops.
    const auto most = partial_ ? static_cast<std::uint64_t>(leased_) : trained_.count();
    for (const auto& [name, count] : applied_) {
      const auto& [shard, stage, bucket] = name;
      if (count < trained_.count() || count > most)
        violated({shard}, "bucket ", bucket, " of stage ", stage, " was applied for ", count,
                 " samples, but ", trained_.count(), " were trained");
    }
  }

 private:
  std::shared_ptr<const Job> job_;
  sim::SampleSet trained_;
  std::int64_t leased_ = 0;  // samples, each counted once
  bool partial_ = false;     // whether the run had a partial push
  /// By shard, stage and bucket.
  std::map<std::tuple<Address, std::uint32_t, std::uint32_t>, std::uint64_t> applied_;
};

}  // namespace leeway::test
