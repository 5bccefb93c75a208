#pragma once
// Feed: keeps the history of a run that proceeds, for the threads that serve its page.
//
// The actors' threads only copy their events into a queue; a thread of the feed counts them. If
// the queue is full, a run on real hosts loses events for the page, and counts them; a simulation
// waits. So the page never slows training. The nodes of a cluster send their events in batches:
// the feed waits for late ones and counts all in the order of their times.
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "actors/monitor/monitor.hpp"
#include "dashboard/run_history.hpp"
#include "dashboard/state.hpp"
#include "monitoring/event_block.hpp"

namespace leeway::dashboard {

class Feed final : public Audience {
 public:
  enum class IfFull : std::uint8_t { lose, wait };

  /// `lateness`: of events from other nodes.
  Feed(RunInfo info, IfFull if_full, Duration lateness = {});
  ~Feed() override;

  /// Thread-safe.
  void event(Address actor, Instant at, const Event& event);
  /// Other nodes have lost events. Thread-safe.
  void lost(std::uint64_t events);

  // On the monitor's thread:
  void progress(const Progress& progress) override;
  void evaluated(const EvaluationResult& result) override;
  void checkpointed(const CheckpointResult& result) override;
  void evicted(WorkerId worker, const msg::Evicted& evicted) override;
  void ended(const RunTotals& totals) override;

  /// The run has failed without an end by its monitor.
  void failed(const std::string& error);

  /// The state as JSON, or its change since a revision, and the new revision.
  struct State {
    std::string json;
    std::uint64_t revision = 0;
    bool has_ended = false;
  };
  State state(std::uint64_t since = 0);

 private:
  static constexpr std::size_t kMostEvents = 1 << 16;

  void run_thread();
  /// Counts the queued events, except those for which late ones may still come, unless `all`.
  /// Requires the lock of the history.
  void count_events(bool all);
  /// Calls change(history) with the lock of the history, after the events before it.
  template <class Change>
  void update(Change&& change, bool all = false) {
    std::lock_guard lock(history_mutex_);
    count_events(all);
    change(history_);
  }

  const IfFull if_full_;
  const Duration lateness_;

  std::mutex queue_mutex_;
  std::condition_variable queue_changed_;
  std::vector<EventRecord> queue_;
  std::uint64_t lost_ = 0;
  bool stops_ = false;

  std::mutex history_mutex_;  // taken before queue_mutex_
  RunHistory history_;
  std::vector<EventRecord> early_;  // events that wait for late ones, by time

  std::thread thread_;
};

}  // namespace leeway::dashboard
