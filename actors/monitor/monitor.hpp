#pragma once
// Monitor: gathers what the actors report, evaluates the cuts, and tells an audience.
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/job.hpp"
#include "actors/monitor/evaluation.hpp"
#include "actors/protocol_role.hpp"

namespace leeway {

/// One worker's part in the run so far. Of a pipeline the last stage has the samples.
struct WorkerTotals {
  std::uint64_t iterations = 0;
  std::uint64_t samples = 0;
  Duration compute;
  Duration wait;                     // ready to compute, but without weights
  Duration wait_before, wait_after;  // of a stage, parts of that: for its neighbours
  std::uint64_t memory_bytes = 0;    // of a stage: the most that it held; see StageMemory
  std::string end;                   // why it was evicted, the last time; empty: it never was
  bool back = false;                 // it has taken part again since
};

/// `worker` waited for `for_worker`, over all shards.
struct WaitTotals {
  WorkerId worker;
  WorkerId for_worker;
  Duration time;
  std::uint64_t count = 0;
};

/// The run so far, as far as the monitor has heard.
struct Progress {
  Instant now;
  Epoch epoch;
  std::uint64_t iterations = 0;
  std::uint64_t samples = 0;          // computed by workers
  std::uint64_t samples_trained = 0;  // confirmed, each counted once
  std::uint64_t partial_pushes = 0;
  std::uint32_t live_workers = 0;
  std::uint32_t staleness = 0;  // under adaptive: the bound that was announced last
  double train_loss = 0;        // mean over the samples since the last progress; NaN without any
  double train_accuracy = 0;
  std::int64_t clock_gap = 0;  // now, the largest over the shards
  std::int64_t max_clock_gap = 0;
  std::uint32_t parked_now = 0;
  std::uint64_t parked_pulls = 0;
  std::uint64_t malformed = 0;
  std::uint64_t refused = 0;
};

struct EvaluationResult {
  Instant now;  // when the cut was evaluated
  std::uint64_t samples_trained = 0;
  double loss = 0;
  double accuracy = 0;
  bool final = false;
};

/// The run, after its end.
struct RunTotals {
  Progress last;
  msg::RunEnded end;
  std::vector<WorkerTotals> workers;
  std::vector<WaitTotals> waits;            // longest first
  std::vector<std::uint64_t> version_lags;  // pushes by lag; the last bin counts all larger ones
  std::vector<EvaluationResult> evaluations;
  std::vector<Blob> weights;  // by block; empty when a shard was lost
  /// The last cut of the run that was evaluated, by block, and its iteration; empty without one.
  std::vector<Blob> last_snapshot;
  Iteration last_snapshot_iteration;
};

/// Whoever wants to know: implemented by the terminal, the run folder and the front door. Called by
/// the monitor's thread.
class Audience {
 public:
  virtual ~Audience() = default;
  virtual void progress(const Progress&) {}
  virtual void evaluated(const EvaluationResult&) {}
  virtual void evicted(WorkerId, const msg::Evicted&) {}
  /// One that was evicted has reported from its next life.
  virtual void came_back(WorkerId) {}
  virtual void ended(const RunTotals&) = 0;
};

class Monitor final : public ProtocolRole {
 public:
  Monitor(std::shared_ptr<const Job> job, std::vector<Audience*> audience);

  void on_start(Outbox& out) override;
  void on_timer(TimerToken token, Outbox& out) override;
  void on_part(Work& work, int part, Outbox& out) override;
  void on_down(Address actor, const std::string& reason, Outbox& out) override;

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
  void look_whether_back(WorkerId worker);
  void handle(Address from, msg::SnapshotState& state, Outbox& out);
  Progress present(Outbox& out);
  void evaluate_next(Outbox& out);
  void end_if_complete(Outbox& out);

  std::shared_ptr<const Job> job_;
  std::vector<Audience*> audience_;
  std::vector<WorkerTotals> workers_;
  struct Life {
    Incarnation heard{0}, evicted{0};  // the last
  };
  std::vector<Life> lives_;  // of workers; a report and an eviction may overtake each other
  std::vector<msg::ShardReport> shards_;
  msg::SchedulerReport scheduler_;
  std::map<std::uint64_t, Gathering> gathering_;         // by cut; the final state is cut 0
  std::deque<std::shared_ptr<Evaluation>> evaluations_;  // the first is being computed
  std::vector<EvaluationResult> results_;
  std::optional<msg::RunEnded> end_;
  Instant ended_at_;
  std::vector<Blob> final_weights_;
  std::vector<Blob> last_snapshot_;
  Iteration last_snapshot_iteration_;
  bool final_evaluated_ = false;
  bool shard_lost_ = false;
  bool ended_ = false;

  // Since the last progress.
  double loss_sum_ = 0;
  std::uint64_t loss_samples_ = 0;
  std::uint64_t correct_ = 0;
};

}  // namespace leeway
