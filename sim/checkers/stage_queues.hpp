#pragma once
// StageQueueChecker: what stages of a pipeline have sent each other, and have not used yet, is
// bounded, as their schedule says.
#include <cstdint>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "actors/job.hpp"
#include "sim/checkers/checker.hpp"

namespace leeway::sim {

/// Under each Start:
/// - activations that have not gone forward at the next stage: no more than their sender keeps.
///   That cannot go back before the next stage has.
/// - gradients that have not gone back at the stage before: no more than that keeps.
/// - iterations with samples that were said (MiniBatch) and not begun. The first stage leases the
///   one whose forwards come next, and one more. Others may also have those to begin that the first
///   has in flight.
/// Iterations without samples hold nothing, and only the staleness rule paces them.
class StageQueueChecker final : public Checker {
 public:
  explicit StageQueueChecker(std::shared_ptr<const Job> job);
  void on_event(Instant, Address actor, const Event& event) override;
  void on_sent(Instant, const Letter& letter) override;
  void on_delivered(Instant, const Letter& letter) override;

 private:
  using Key = std::tuple<Iteration, std::uint32_t, std::uint32_t>;  // micro-batch, part that reads
  /// What a stage has sent, of the latest Start that it has sent something of.
  struct Sent {
    std::uint64_t start = 0;
    std::set<Key> activations, gradients;  // not used
    std::set<Iteration> said;              // not begun by whom it was said to
    std::set<Iteration> leased;            // of a first stage: not begun by itself
  };

  Sent& sent_by(Address actor, std::uint64_t start);
  /// What `sender` has sent to a stage that goes by this Start; null where it goes by another.
  Sent* sent_to(Address receiver, WorkerId sender);
  void bounded(Address from, Address to, std::size_t count, int most, const char* what) const;
  int peak(Address actor) const;
  WorkerId after(Address actor) const;
  WorkerId before(Address actor) const;

  std::shared_ptr<const Job> job_;
  std::vector<int> peaks_;  // by stage: activations that it keeps; none: nothing is checked
  int most_leased_ = 2, most_said_ = 0;
  std::vector<std::uint64_t> starts_;  // by worker: what it goes by
  std::vector<Sent> sent_;             // by worker
};

}  // namespace leeway::sim
