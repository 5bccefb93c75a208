#pragma once
// SampleCounts: checks by events that a run over several nodes trained each sample once. Hosts that
// see all messages use SampleChecker.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>

#include "actors/job.hpp"
#include "sim/checkers/checker.hpp"
#include "sim/checkers/sample_set.hpp"

namespace leeway::test {

/// By the scheduler's account each position of an epoch is trained once; and shards have applied
/// each part of each stage for as many samples as that says. Where a run stops early, some parts
/// may also have those of partial iterations, which have been leased and are not trained.
class SampleCounts final : public sim::Checker {
 public:
  explicit SampleCounts(std::shared_ptr<const Job> job)
      : Checker("each sample is trained exactly once per epoch (6)"),
        job_(std::move(job)),
        trained_(job_->data.train->size()) {}

  void on_event(Instant, Address actor, const Event& event) override {
    if (event.kind == Event::Kind::bucket_applied)
      applied_[{actor, job_->stages->stage_of(event.worker), event.value}] +=
          static_cast<std::uint64_t>(event.value2);
    if (event.kind == Event::Kind::lease_granted && event.value < event.value2)
      leased_ = std::max(leased_, event.epoch.value() * job_->data.train->size() + event.value2);
    partial_ |= event.kind == Event::Kind::partial;
    if (event.kind != Event::Kind::trained) return;
    if (const auto twice = trained_.insert(event.epoch, event.value, event.value2))
      violated({actor, address_of(event.worker)}, "position ", *twice, " of epoch ", event.epoch,
               " trained again");
  }

  void on_run_ended(const RunTotals& totals) override {
    if (totals.end.samples_trained != trained_.count())
      violated({kScheduler}, "it counts ", totals.end.samples_trained,
               " samples, but its events have ", trained_.count(), " trained ones");
    if (totals.end.reason == msg::RunEnded::Reason::failed) return;
    // Partial pushes are not completed after the run stops.
    const auto most = partial_ ? static_cast<std::uint64_t>(leased_) : trained_.count();
    for (const auto& [name, count] : applied_) {
      const auto& [shard, stage, part] = name;
      if (count < trained_.count() || count > most)
        violated({shard}, "part ", part, " of stage ", stage, " was given ", count,
                 " samples; trained were ", trained_.count());
    }
  }

 private:
  std::shared_ptr<const Job> job_;
  sim::SampleSet trained_;
  std::int64_t leased_ = 0;  // samples, each counted once
  bool partial_ = false;     // whether anything was
  /// By shard, stage and part.
  std::map<std::tuple<Address, std::uint32_t, std::int64_t>, std::uint64_t> applied_;
};

}  // namespace leeway::test
