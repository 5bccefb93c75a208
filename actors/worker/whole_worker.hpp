#pragma once
// WholeWorker: a participant that trains the whole model, one iteration at a time: the common base
// of Worker, which computes it, and UserWorker, for which a program does.
//
// A round that closes without its push makes it skip iterations. Under delay_threshold, it computes
// an iteration again whose weights have become too old.
#include <optional>

#include "actors/worker/participant.hpp"

namespace leeway {

class WholeWorker : public Participant {
 protected:
  using Participant::Participant;

  /// Whether an iteration is being computed: pushed_.iteration.
  virtual bool is_iterating() const = 0;
  /// The iteration is not pushed, so its computation may end early.
  virtual void discard_work() {}

  void started(const msg::Start& start, Outbox& out) override;
  Clock acknowledged() const final;
  bool take(Address from, Envelope& envelope, Outbox& out) override;
  /// The samples of the iteration that this worker computes.
  virtual std::int64_t samples_to_compute(const LeasedIteration& leased) const {
    return leased.samples();
  }

  /// Pulls the weights of the next iteration. Does nothing if this pull is open, or if another
  /// iteration is being computed and the plan has no prefetch.
  void pull_next(Outbox& out);
  /// Begins the next iteration with its leased samples, and returns them. Requires that it is
  /// leased.
  const LeasedIteration& begin_next(Outbox& out);
  /// The iteration is over. `samples`: 0 if it had none, or is dropped.
  void count_iteration(Iteration iteration, std::int64_t samples, Outbox& out);
  /// The worker has computed its samples of the iteration, and waits from now on.
  void count_computed(Iteration iteration, std::int64_t samples, Outbox& out);
  /// Counts samples of an iteration for the next lease request.
  void spend(std::int64_t samples, Instant until);
  /// The dropped iteration is given up after this many of its samples. The scheduler hears how long
  /// they took: a worker whose pushes are always dropped has a measured speed, too.
  void count_given_up(std::int64_t samples, Outbox& out);

  Iteration next_;               // to begin
  PushedIteration pushed_;       // the latest that has begun
  bool has_pushed_any_ = false;  // of its buckets
  bool dropped_ = false;         // its gradients are not pushed: see PushDropped and Outdated
  Instant waiting_since_;

 private:
  void handle(Address from, const msg::PushDropped& dropped, Outbox& out);
  void handle(Address from, const msg::Outdated& outdated, Outbox& out);

  LeasedIteration leased_;                   // of the latest iteration that has begun
  std::optional<LeasedIteration> repeated_;  // of the next iteration, if it begins again
  Instant computing_since_;
};

}  // namespace leeway
