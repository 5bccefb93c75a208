#pragma once
// Monitor: adds up the reports of the actors, evaluates snapshots, and informs an audience.
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/channel.hpp"
#include "actors/job.hpp"
#include "actors/monitor/evaluation.hpp"
#include "actors/monitor/report.hpp"
#include "actors/protocol_role.hpp"

namespace leeway {

/// The run after its end, with its weights.
struct RunTotals : RunReport {
  std::vector<Blob> weights;        // by block; empty when a shard was lost, and the run has failed
  std::vector<Blob> last_snapshot;  // evaluated last, by block; empty without one
};

/// Receives the progress of a run. The terminal, the run folder and the public API implement it.
/// Called on the monitor's thread.
class Audience {
 public:
  virtual ~Audience() = default;
  virtual void progress(const Progress&) {}
  virtual void evaluated(const EvaluationResult&) {}
  /// A checkpoint is complete, or could not be written.
  virtual void checkpointed(const CheckpointResult&) {}
  virtual void evicted(WorkerId, const msg::Evicted&) {}
  /// An evicted worker has reported under its next session.
  virtual void came_back(WorkerId) {}
  /// The scheduler has announced another staleness bound.
  virtual void bound_moved(const msg::BoundMoved&) {}
  /// A shard with a standby has lost a replica, or has another primary or a new standby.
  virtual void replicas_changed(const msg::ReplicasChanged&) {}
  virtual void ended(const RunTotals&) = 0;
};

class Monitor final : public ProtocolRole {
 public:
  Monitor(std::shared_ptr<const Job> job, std::vector<Audience*> audience);

  void on_start(Outbox& out) override;
  void on_timer(TimerToken token, Outbox& out) override;
  void on_part(Work& work, int part, Outbox& out) override;
  void on_down(Address actor, const EndReason& reason, Outbox& out) override;

 private:
  struct Gathering {
    std::vector<Blob> weights;
    std::vector<bool> arrived;  // by shard
    std::size_t missing = 0;
    Iteration iteration;
    bool final = false;
  };

  void on_envelope(Address from, Envelope& envelope, Outbox& out) override;
  void handle(WorkerId worker, const msg::WorkerReport& report);
  void report_if_back(WorkerId worker);
  void handle(Address from, msg::SnapshotState& state, Outbox& out);
  /// The progress now. Resets the sums since the last call.
  Progress take_progress(Outbox& out);
  void evaluate_next(Outbox& out);
  /// No final state can come.
  void lose(const std::string& reason, Outbox& out);
  void end_if_complete(Outbox& out);

  std::shared_ptr<const Job> job_;
  std::vector<Audience*> audience_;
  std::vector<WorkerTotals> workers_;
  /// The last session that reported, and the last that was evicted. A report and an eviction
  /// may overtake each other.
  struct LastSeen {
    Session heard{0}, evicted{0};
  };
  std::vector<LastSeen> last_seen_;  // by worker
  std::vector<msg::ShardReport> shards_;
  std::vector<Channel> channels_;  // to the shards
  msg::SchedulerReport scheduler_;
  std::map<std::uint64_t, Gathering> gathering_;  // by snapshot; the final state is 0
  std::uint64_t newest_snapshot_ = 0;
  std::deque<std::shared_ptr<Evaluation>> evaluations_;  // the first is being computed
  std::vector<EvaluationResult> results_;
  std::vector<CheckpointResult> checkpoints_;
  std::optional<msg::RunEnded> end_;
  Instant ended_at_;
  std::vector<Blob> final_weights_;
  std::vector<Blob> last_snapshot_;
  Iteration last_snapshot_iteration_;
  bool final_evaluated_ = false;
  std::string lost_;  // the first loss after which no final state can come; empty: none
  bool ended_ = false;

  std::map<std::pair<WorkerId, WorkerId>, WaitTotals> group_waits_;  // within host groups

  // Since the last progress.
  double loss_sum_ = 0;
  std::uint64_t loss_samples_ = 0;
  std::uint64_t correct_ = 0;
  std::uint64_t stage_bytes_ = 0, plain_stage_bytes_ = 0;  // since the begin
};

}  // namespace leeway
