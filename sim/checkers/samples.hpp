#pragma once
// SampleChecker: property 6, each sample is trained exactly once per epoch, in every block; what
// was partial is completed, not repeated.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/job.hpp"
#include "sim/checkers/checker.hpp"
#include "sim/checkers/sample_set.hpp"

namespace leeway::sim {

/// By the scheduler's account; and each part of each stage was given by its shard the very samples
/// that this says, none of them twice. Which samples an iteration has, the leases tell. Where a run
/// stops early, some parts may also have those of partial iterations, which are not trained.
class SampleChecker final : public Checker {
 public:
  explicit SampleChecker(std::shared_ptr<const Job> job);
  void on_event(Instant, Address actor, const Event& event) override;
  void on_sent(Instant, const Letter& letter) override;
  void on_run_ended(const RunTotals& totals) override;

 private:
  /// Iterations [first, beyond), each of `batch` samples, the last one of what is left.
  struct Lease {
    Iteration first, beyond;
    Epoch epoch;
    std::int64_t begin = 0, end = 0;  // positions
    std::int64_t batch = 0;
    std::int64_t missing = 0;  // parts of pushes that shards have yet to apply, or to drop
  };
  /// What a worker, or a pipeline, was leased under a Start.
  struct Leased {
    std::uint64_t start = 0;
    Iteration beyond;
    std::vector<Lease> leases;  // of which something is missing
  };
  struct Start {
    std::uint64_t number = 0;
    Incarnation incarnation;  // of the worker that it was for
    Iteration from;
  };
  /// A part that a stage owes a shard.
  struct Part {
    ShardId shard;
    std::uint32_t stage = 0, index = 0;
    SampleSet applied;
  };

  void started(WorkerId worker, Incarnation incarnation, const msg::Start& start);
  void leased(WorkerId lead, const msg::Lease& lease);
  void trained(Address actor, const Event& event);
  void applied(Address actor, const Event& event);
  /// The lease that fills an iteration; null where there is none, or nothing is missing of it.
  Lease* find(WorkerId worker, Incarnation incarnation, Iteration iteration);
  void count(WorkerId worker, Lease& lease, std::size_t parts);
  Part& part_of(Address shard, WorkerId worker, std::int64_t part);
  std::string name_of(const Part& part) const;

  std::shared_ptr<const Job> job_;
  std::vector<std::vector<std::size_t>> first_part_;  // by shard and stage: index into parts_
  std::vector<Part> parts_;
  std::vector<std::vector<Start>> starts_;   // by worker
  std::vector<std::vector<Leased>> leased_;  // by lead
  SampleSet trained_;
  bool partial_ = false;  // whether anything was
};

}  // namespace leeway::sim
