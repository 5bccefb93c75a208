#pragma once
// Checkpoints: decides when a checkpoint is due, and completes it.
//
// due -- a snapshot is proposed --> proposed -- all shards have taken it --> storing
// storing -- all shards have stored their files --> committing -- the manifest is written --> none
//
// The manifest holds the scheduler's state at the snapshot, which LeaseBook follows from the
// proposal on. A checkpoint is abandoned and due again if a sample has gradients in some buckets
// only: another number of shards could not complete them.
//
// When all workers have stopped, the state itself is consistent and can be stored without a
// proposal. A run thus ends with a checkpoint.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/scheduler/bound_control.hpp"
#include "actors/scheduler/leases.hpp"
#include "checkpoint/manifest.hpp"

namespace leeway {

/// Pushes so far.
struct PushCounts {
  std::uint64_t partial = 0;
  std::uint64_t dropped = 0;
};

class Checkpoints {
 public:
  Checkpoints(std::shared_ptr<const Job> job, const Roster& roster, Leases& leases,
              const BoundControl& bound);

  /// False if the run writes none.
  bool enabled() const { return job_->checkpoints != nullptr; }
  /// The time between two checkpoints; 0 if they do not go by time.
  Duration interval() const;
  /// Makes a checkpoint due.
  void request() { data_.due = true; }
  /// Call after each lease: checkpoints may go by epochs or iterations.
  void count_leased();
  /// True if a checkpoint is due and can begin. With a codec for pushes, this orders the members to
  /// push their residuals, and is true when the last lease of each running one does so.
  bool prepare();
  /// A checkpoint is due, and waits for the pushes of residuals.
  bool is_preparing() const { return data_.due && data_.flushes; }
  /// True while a checkpoint is being taken or written.
  bool busy() const { return data_.current.has_value(); }
  /// True if a run that ends for this reason, with all workers stopped, stores its state. A run
  /// that is done stores it if it has written checkpoints or has a chosen interval.
  bool wanted_at_end(msg::RunEnded::Reason reason) const;
  /// Lets a checkpoint fail that is not being completed yet: its weights are of no use.
  void spoil(const std::string& reason);
  /// Gives up a checkpoint whose snapshot has not been taken.
  void abandon_untaken();

  /// A snapshot with these iterations, by pipeline, is proposed. Returns the checkpoint's number,
  /// which no other proposal has.
  std::uint64_t propose(const std::vector<Iteration>& ends);
  /// All shards have taken the snapshot. `evaluated_at`: samples leased when the last complete
  /// evaluation was due. False if the checkpoint is abandoned.
  bool taken(const PushCounts& counts, double evaluated_at, Outbox& out);
  /// A shard's answer.
  void stored(ShardId shard, msg::Stored& answer, Outbox& out);
  /// The manifest is written, or could not be.
  void committed(const Work& work, Outbox& out);

 private:
  struct Current {
    checkpoint::Manifest manifest;
    std::vector<bool> stored;  // by shard
    std::size_t missing = 0;
    bool taken = false;
    std::uint64_t samples = 0;
    std::string error;
  };
  /// Samples or iterations leased so far, and the interval of checkpoints in the same unit.
  struct Count {
    double now, interval;
    double next() const;  // end of the present interval
  };
  /// The mutable state.
  struct Data {
    bool due = false;
    bool flushes = false;  // the members push their residuals
    std::uint64_t next_number = 1;
    double next_due = 0;  // samples or iterations leased
    std::optional<Current> current;
    std::uint64_t written = 0;       // over the whole life of the run
    std::uint64_t last_samples = 0;  // trained, in the last one written or resumed
  };

  Current begin();
  /// None if checkpoints go by time.
  std::optional<Count> count() const;
  void commit_if_complete(Outbox& out);
  void report(std::uint64_t number, std::uint64_t samples, std::uint64_t bytes,
              const std::string& error, Outbox& out) const;

  std::shared_ptr<const Job> job_;
  const Roster& roster_;
  Leases& leases_;
  const BoundControl& bound_;
  Data data_;
};

}  // namespace leeway
