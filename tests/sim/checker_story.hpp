#pragma once
// Support for tests of checkers: sequences of events and messages, and the violations they cause.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/observers.hpp"
#include "tests/sim/seen.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::sim {

inline const Address kShard = address_of(ShardId(0));
inline const WorkerId kA(0), kB(1);
inline const Address kWorkerA = address_of(kA), kWorkerB = address_of(kB);

/// Feeds checkers with events and messages under short names.
class Story {
 public:
  explicit Story(std::vector<std::shared_ptr<Observer>> observers)
      : observers_(std::move(observers)) {}

  void emits(Address actor, const Event& event) { observers_.event(tick(), actor, event); }
  void sends(Address from, Address to, Body body, Session session = Session(1)) {
    observers_.sent(tick(), letter(from, to, std::move(body), session));
  }
  void delivers(Address from, Address to, Body body, Session session = Session(1)) {
    observers_.delivered(tick(), letter(from, to, std::move(body), session));
  }
  void ends(Address actor) { observers_.ended(tick(), actor); }
  void run_ends(const RunTotals& totals) { observers_.run_ended(totals); }

  void admitted(WorkerId worker, std::int64_t iteration = 0) {
    emits(kShard, event::Admitted{worker, Iteration(iteration)});
  }
  void moved(WorkerId worker, std::int64_t clock) {
    emits(kShard, event::ClockMoved{worker, Clock(clock)});
  }
  void pulls(WorkerId worker, std::int64_t iteration, std::int64_t own_clock) {
    delivers(address_of(worker), kShard, msg::Pull{Iteration(iteration), Clock(own_clock)});
  }
  void parked(WorkerId worker, std::int64_t iteration) {
    emits(kShard, event::PullParked{.worker = worker, .iteration = Iteration(iteration)});
  }
  void answered(WorkerId worker, std::int64_t iteration) {
    emits(kShard, event::PullAnswered{.worker = worker, .iteration = Iteration(iteration)});
  }
  void applied(WorkerId worker, std::int64_t iteration, std::uint32_t bucket = 0,
               std::uint32_t samples = 1) {
    emits(kShard, event::BucketApplied{.worker = worker,
                                       .session = Session(1),
                                       .iteration = Iteration(iteration),
                                       .bucket = bucket,
                                       .samples = samples});
  }
  void trained(std::int64_t begin, std::int64_t end, std::int64_t epoch = 0) {
    emits(kScheduler, event::Trained{.epoch = Epoch(epoch), .begin = begin, .end = end});
  }

 private:
  Instant tick() { return now_ = now_ + milliseconds(1); }
  static Letter letter(Address from, Address to, Body body, Session session) {
    return {from, to, encode({.session = session, .body = std::move(body)})};
  }
  Observers observers_;
  Instant now_;
};

inline std::shared_ptr<const Job> ssp_job(std::uint32_t staleness = 1) {
  Plan plan = test::tiny_plan();
  plan.shards = 1;
  plan.consistency = plan::Ssp{staleness};
  return test::job_of(plan);
}

}  // namespace leeway::sim
