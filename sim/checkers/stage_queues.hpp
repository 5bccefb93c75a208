#pragma once
// StageQueueChecker: the queues between stages of a pipeline respect the bounds of the schedule.
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "actors/job.hpp"
#include "sim/checkers/checker.hpp"

namespace leeway::sim {

/// Checks in each session:
/// - Activations that the stage of the next chunk has not computed: at most as many as their sender
///   keeps for backward.
/// - Gradients that the stage of the previous chunk has not computed: at most as many as that stage
///   keeps.
/// - Iterations with samples that were announced (MiniBatch) but not started. The first stage
///   leases the iteration of its next forward and one more. Later stages may also have to start
///   those that the first stage has in flight.
/// Iterations without samples occupy no memory; only the staleness rule limits them.
class StageQueueChecker final : public Checker {
 public:
  explicit StageQueueChecker(std::shared_ptr<const Job> job);
  void on_event(Instant, Address actor, const Event& event) override;
  void on_sent(Instant, const Letter& letter) override;
  void on_delivered(Instant, const Letter& letter) override;

 private:
  using Key = std::tuple<Iteration, std::uint32_t, std::uint32_t>;  // micro-batch, reading chunk
  /// Messages of a stage in the latest session in which it has sent one.
  struct Sent {
    Session session;
    std::set<Key> activations, gradients;  // not computed
    std::set<Iteration> announced;         // not started by the receiver
    std::set<Iteration> leased;            // of a first stage: not started by itself
  };

  Sent& sent_by(Address actor, Session session);
  /// The messages of `sender` in the receiver's session; null if the sender is in another.
  Sent* sent_to(Address receiver, WorkerId sender);
  void bounded(Address from, Address to, std::size_t count, int most, const char* what) const;
  int peak(Address actor) const;
  /// The stage of the actor's pipeline that has a chunk of the model; empty if no chunk has that
  /// number.
  std::optional<WorkerId> owner_of(Address actor, std::int64_t chunk) const;

  std::shared_ptr<const Job> job_;
  std::vector<int> peaks_;  // by stage: activations that it keeps; empty: no pipeline
  int most_leased_ = 2, most_announced_ = 0;
  std::vector<Session> sessions_;  // by worker
  std::vector<Sent> sent_;         // by worker
};

}  // namespace leeway::sim
