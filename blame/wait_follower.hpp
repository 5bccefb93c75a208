#pragma once
// WaitFollower: follows the events of a run, and divides each wait of a worker by its causes.
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/address.hpp"
#include "core/time.hpp"
#include "messages/events.hpp"

namespace leeway::blame {

/// Why a worker waited.
struct Cause {
  enum class Kind : std::uint8_t {
    worker,        // a parked pull that this worker's push released
    stage_before,  // an activation
    stage_after,   // a gradient
    request,       // a pull or a lease on its way, and its shard's queue
    samples,       // a lease
    weights,       // the answer on its way, and its shard's queue
    other,         // not known without --trace: request, samples and weights
  };
  Kind kind = Kind::other;
  std::size_t worker = 0;  // with Kind::worker
  auto operator<=>(const Cause&) const = default;
};

std::string name_of(const Cause& cause);
/// A sentence about the cause of the longest waits, with its share of all time and a remedy.
std::string explain(const Cause& cause, double share);

/// A part of a worker's wait.
struct Wait {
  std::size_t worker = 0;
  Cause cause;
  Instant begin, end;
  /// With Kind::worker: of the push that ended the wait. None: the worker was removed.
  std::optional<Iteration> iteration;
};

/// A wait ends when a worker starts an iteration, whose event states how long it has waited. It is
/// divided at the moments of the pull that was answered last: when the lease came, when the pull
/// was parked, and when it was answered. The workers of a host group wait for the pull of their
/// lead, and before that for the last gradient of the group's iteration. A stage waits before its
/// operations, whose events state how long it has waited for its neighbours.
class WaitFollower {
 public:
  /// Called for each part of a wait.
  using OnWait = std::function<void(const Wait&)>;

  explicit WaitFollower(OnWait on_wait) : on_wait_(std::move(on_wait)) {}
  void handle(Address actor, Instant at, const Event& event);
  /// Pulls whose iterations have not begun.
  std::size_t open_pulls() const { return pulls_.size(); }

 private:
  /// A change of the clocks of a shard.
  struct Move {
    WorkerId worker;
    std::optional<Iteration> iteration;  // of its push; none: it was removed
  };
  /// The pulls of one iteration at all shards.
  struct Pulls {
    std::map<Address, Instant> parked;  // by shard
    Instant answered;                   // at the last shard that has answered
    std::optional<Instant> parked_at;   // at the same shard
    std::optional<Move> released_by;    // at the same shard
  };

  /// The last gradient of the latest iteration of a host group.
  struct Gathered {
    Instant at;
    WorkerId last;  // the worker that sent it
    Iteration iteration;
  };

  /// Whether the worker has started the iteration: an event of another node may come after it.
  bool has_begun(WorkerId worker, Iteration iteration) const;
  /// Drops the worker's pulls of iterations up to `last`.
  void forget(WorkerId worker, Iteration last);
  void answered(Address shard, const event::PullAnswered& pull, Instant now);
  void started(const event::StepStarted& step, Instant now);
  void gathered(const event::GroupGathered& group, Instant now);
  void computed(const event::StageComputed& operation, Instant now);

  void report(const Wait& wait) const;

  OnWait on_wait_;
  std::map<std::pair<WorkerId, Iteration>, Pulls> pulls_;
  std::map<std::pair<Address, WorkerId>, std::optional<Iteration>> moved_;  // as in Move
  std::map<Address, Move> mover_;          // by shard: releases the pull that is answered next
  std::map<WorkerId, Instant> leased_;     // the time of its last lease
  std::map<WorkerId, Iteration> started_;  // its last iteration
  // By the lead of a host group: the pulls of its last iteration, and the gradients before it.
  std::map<WorkerId, Pulls> pulls_of_group_;
  std::map<WorkerId, Gathered> gathered_;
};

}  // namespace leeway::blame
