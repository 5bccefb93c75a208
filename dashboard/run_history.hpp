#pragma once
// RunHistory: what the page shows of a run, from its events and the reports of its monitor. Its
// memory is bounded. Not thread-safe.
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/monitor/monitor.hpp"
#include "blame/wait_follower.hpp"
#include "dashboard/intervals.hpp"

namespace leeway::dashboard {

/// The settings of a run that the page shows.
struct RunInfo {
  std::string name;
  std::string kind;      // "threads", "cluster", "simulation" or "recorded"
  std::string policy;    // "ssp(4)"
  std::string checkers;  // of a simulation
  std::uint32_t workers = 1, shards = 1, stages = 1, batch = 1;
  std::uint32_t group = 1;  // workers of a host group
  std::uint64_t seed = 0;
  std::optional<std::uint32_t> bound;  // none: no pull waits for another worker
  bool has_accuracy = false, has_losses = true;
  bool has_events = true;
  bool can_stop = false, can_predict = false;
  bool keeps_operations = false;  // of all times, also those that the state lacks
};

/// The settings of a plan. `policy`: its consistency policy in words; `bound`: that of the policy.
RunInfo info_of(const Plan& plan, std::string policy, std::int64_t bound);

/// A point of a loss curve.
struct CurvePoint {
  double seconds = 0;
  std::uint64_t samples = 0;  // trained
  double loss = 0, accuracy = 0;
};

/// Something that happened once.
struct Mark {
  double seconds = 0;
  /// "evicted", "left", "returned", "joined", "checkpoint", "evaluated", "bound", "replica" or
  /// "end".
  std::string kind;
  std::string text;
};

/// A computation of a stage.
struct StageOperation {
  event::StageComputed computed;
  double end = 0;
};

/// A parked pull that has not been answered.
struct ParkedPull {
  WorkerId worker;
  double since = 0;
};

class RunHistory {
 public:
  static constexpr std::size_t kMostPoints = 512;  // of a curve
  static constexpr std::size_t kMostMarks = 256;
  static constexpr std::size_t kMostOperations = 600;
  static constexpr std::size_t kMostShards = 64;  // with a distribution of leads

  explicit RunHistory(RunInfo info);
  RunHistory(const RunHistory&) = delete;
  RunHistory& operator=(const RunHistory&) = delete;

  // ---- what happens ----

  void event(Address actor, Instant at, const Event& event);
  void progress(const Progress& progress);
  void evaluated(const EvaluationResult& result);
  /// A mark for a checkpoint that could not be written. Without events, also for one that was.
  void checkpointed(const CheckpointResult& result);
  void mark(double seconds, std::string kind, std::string text);
  /// Adds the reason to the first mark without one of an eviction or departure of the worker, or a
  /// mark at `seconds`.
  void explain_eviction(WorkerId worker, const std::string& reason, double seconds);
  /// The process of the run holds this much memory.
  void memory(std::uint64_t bytes) { peak_memory_ = std::max(peak_memory_, bytes); }
  void ended(double seconds, std::string reason, std::string text);
  /// The waiting times of a recorded run without events, in seconds by cause.
  void set_waits(const std::map<blame::Cause, double>& causes, double compute);

  // ---- what the page shows ----

  const RunInfo& info() const { return info_; }
  double now() const { return now_; }
  /// Grows with each change.
  std::uint64_t revision() const { return revision_; }
  const Intervals& intervals() const { return intervals_; }
  /// After the end, those that were live just before: every worker leaves at the end.
  std::uint32_t live_workers() const;
  /// The number of workers that computed in an interval, those included that still compute.
  std::size_t taking_part(std::size_t interval) const;
  std::uint64_t peak_memory() const { return peak_memory_; }
  const Progress& latest() const { return latest_; }
  /// By the latest report of the monitor, or by the events since.
  std::uint64_t iterations() const { return std::max(latest_.iterations, iterations_); }
  std::uint64_t samples() const { return std::max(latest_.samples, samples_); }
  std::optional<std::uint32_t> bound() const { return bound_; }
  const std::map<blame::Cause, double>& causes() const { return causes_; }
  /// The causes in the order in which they occurred first, after the unknown one.
  const std::vector<blame::Cause>& known_causes() const { return known_causes_; }
  /// The index of a known cause in that order.
  std::size_t index_of(const blame::Cause& cause) const { return cause_index_.at(cause); }
  double compute() const { return compute_; }
  double wait() const { return wait_; }
  const std::vector<CurvePoint>& train() const { return train_; }
  const std::vector<CurvePoint>& test() const { return test_; }
  const std::vector<Mark>& marks() const { return marks_; }
  const std::vector<Leads>& leads_by_row() const { return leads_by_row_; }
  const std::vector<Leads>& leads_by_shard() const { return leads_by_shard_; }
  const std::deque<StageOperation>& operations() const { return operations_; }
  /// Parked pulls by worker, and the worker that they wait for: the slowest one.
  std::vector<ParkedPull> parked() const;
  WorkerId slowest() const;
  /// By worker, in a pipelined run: the mean time of its operations over the median of the same
  /// operations in all pipelines, or in all stages of a single pipeline. 0: not measured.
  std::vector<double> slowness() const;
  std::size_t rows() const { return leads_by_row_.size(); }
  std::size_t row_of(std::size_t worker) const { return worker * rows() / info_.workers; }
  /// "worker 3", or "workers 48-63".
  std::string name_of_row(std::size_t row) const;
  std::size_t size_of_row(std::size_t row) const {
    return first_of_row(row + 1) - first_of_row(row);
  }
  struct End {
    std::string reason, text;
  };
  const std::optional<End>& end() const { return end_; }
  /// The revision at which these have changed last.
  std::uint64_t curves_changed() const { return curves_changed_; }
  std::uint64_t known_causes_changed() const { return known_causes_changed_; }
  std::uint64_t marks_changed() const { return marks_changed_; }
  std::uint64_t operations_changed() const { return operations_changed_; }

 private:
  /// The first worker of a row: the smallest with row_of(worker) == row.
  std::size_t first_of_row(std::size_t row) const {
    return (row * info_.workers + rows() - 1) / rows();
  }
  Interval& at(double seconds) { return intervals_.at(seconds, revision_); }
  void waited(std::size_t worker, const blame::Cause& cause, double begin, double end);
  void computed(double begin, double end);
  /// The worker takes part in all intervals since the start of its step.
  void end_step(std::size_t worker, double now);
  void answered(Address shard, const event::PullAnswered& pull, double now);
  void set_alive(WorkerId first, std::uint32_t count, bool alive, double now);
  void membership(const Event& event, double now);
  void stage_computed(const event::StageComputed& operation, double now);
  void add_cause(const blame::Cause& cause, double seconds);
  /// Divides the bytes that were sent since the latest progress over the time from `begin` to
  /// `end`.
  void sent(std::uint64_t Progress::*total, std::uint64_t Interval::*part, const Progress& progress,
            double begin, double end);
  static void add_point(std::vector<CurvePoint>& curve, const CurvePoint& point);

  RunInfo info_;
  std::uint64_t revision_ = 1;
  double now_ = 0;
  std::optional<End> end_;
  Intervals intervals_;
  blame::WaitFollower waits_;
  Progress latest_;
  std::uint64_t peak_memory_ = 0;
  std::uint64_t iterations_ = 0, samples_ = 0;  // by events
  std::optional<std::uint32_t> bound_;
  std::map<blame::Cause, double> causes_;
  std::vector<blame::Cause> known_causes_{blame::Cause{}};
  std::map<blame::Cause, std::size_t> cause_index_{{blame::Cause{}, 0}};
  std::uint64_t known_causes_changed_ = 0;
  double compute_ = 0, wait_ = 0;
  std::vector<CurvePoint> train_, test_;
  std::vector<Mark> marks_;
  std::vector<Leads> leads_by_row_, leads_by_shard_;
  std::deque<StageOperation> operations_;
  std::uint64_t curves_changed_ = 0, marks_changed_ = 0, operations_changed_ = 0;
  // By worker:
  struct WorkerState {
    bool alive = false, was_evicted = false;
    std::int64_t clock = 0;
    std::optional<double> computing_since;
    /// By kind of operation.
    struct Sum {
      double seconds = 0;
      std::uint64_t count = 0;
    };
    std::array<Sum, 3> operations;
  };
  std::vector<WorkerState> workers_;
  std::uint32_t alive_ = 0, live_before_end_ = 0;          // by events, and by reports
  bool has_begun_ = false;                                 // a worker has started an iteration
  std::map<std::pair<WorkerId, Address>, double> parked_;  // since when, by worker and shard
};

}  // namespace leeway::dashboard
