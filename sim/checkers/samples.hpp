#pragma once
// SampleChecker: property 6, each sample is trained exactly once per epoch, in every block. Partial
// iterations are completed, not repeated.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/job.hpp"
#include "sim/checkers/checker.hpp"
#include "sim/checkers/sample_set.hpp"

namespace leeway::sim {

/// Checks the scheduler's events, and that each bucket got the samples of these events once. The
/// leases give the samples of an iteration. If a run stops early, a bucket may also have samples of
/// partial iterations, which are not trained. A resumed run begins with the samples that its
/// checkpoint has trained.
class SampleChecker final : public Checker {
 public:
  explicit SampleChecker(std::shared_ptr<const Job> job);
  void on_event(Instant, Address actor, const Event& event) override;
  void on_sent(Instant, const Letter& letter) override;
  void on_run_ended(const RunTotals& totals) override;

 private:
  /// Iterations [first, beyond), each of `batch` samples; the last one has the rest.
  struct Lease {
    Iteration first, beyond;
    Epoch epoch;
    std::int64_t begin = 0, end = 0;  // positions
    std::int64_t batch = 0;
    std::int64_t missing = 0;  // buckets that shards have neither applied nor dropped
  };
  /// The leases of a worker or pipeline in one session.
  struct Leased {
    Session session;
    Iteration beyond;
    std::vector<Lease> leases;  // with missing buckets
  };
  /// A bucket that a stage pushes to a shard.
  struct StageBucket {
    ShardId shard;
    std::uint32_t stage = 0, index = 0;
    SampleSet applied;
  };

  void started(WorkerId worker, Session session, Iteration iteration);
  void leased(WorkerId lead, const msg::Lease& lease);
  void check_trained(Address actor, const event::Trained& trained);
  void check_applied(Address actor, const event::BucketApplied& applied);
  /// The lease of an iteration. Null without one, or if no bucket of it is missing.
  Lease* find(WorkerId worker, Session session, Iteration iteration);
  void count(WorkerId worker, Lease& lease, std::size_t buckets);
  StageBucket& bucket_of(Address shard, WorkerId worker, std::uint32_t bucket);
  std::string name_of(const StageBucket& bucket) const;

  std::shared_ptr<const Job> job_;
  std::vector<std::vector<std::size_t>> first_bucket_;  // by shard and stage: index into buckets_
  std::vector<StageBucket> buckets_;
  std::vector<std::vector<Leased>> leased_;  // by lead
  SampleSet trained_;
  bool partial_ = false;  // some iteration was partial
};

}  // namespace leeway::sim
