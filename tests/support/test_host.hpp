#pragma once
// TestHost: runs the roles without CAF, one action at a time, in an order drawn from a seed.
//
// Each ordered pair of actors has a channel that keeps the order of messages, except that a pull
// may overtake pushes. Deliveries and computations are actions. Time is virtual and advances only
// when no action is possible. Workers can be killed, suspected (evicted while alive), or lose a
// link.
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/monitor/monitor.hpp"
#include "actors/scheduler/scheduler.hpp"
#include "actors/shard/shard.hpp"
#include "actors/worker/participant.hpp"
#include "sim/observers.hpp"

namespace leeway::test {

/// Each fault happens once in this many actions on average; 0 disables it.
struct FaultRates {
  std::uint64_t kill_one_in = 0;
  std::uint64_t suspect_one_in = 0;
  std::uint64_t break_link_one_in = 0;  // from a worker to a shard or a neighbouring stage
  std::uint64_t garbage_one_in = 0;     // a message of random bytes between random actors
  std::uint32_t workers_to_keep = 1;
};

class TestHost : public Audience {
 public:
  TestHost(std::shared_ptr<const Job> job, std::uint64_t seed, FaultRates faults = {});
  ~TestHost() override;

  void observe(std::shared_ptr<sim::Observer> observer) { observers_.add(std::move(observer)); }
  /// Runs to the end and calls the observers. Throws CheckFailed on a deadlock, with the waiting
  /// actors.
  RunTotals run();
  /// Runs up to `actions` further actions. Returns false when the run has ended.
  bool run_some(int actions);

  void kill(Address actor);
  void suspect(WorkerId worker);
  /// Drops the first messages, or all messages, in flight between the two, and reports the broken
  /// link to both.
  void break_link(Address worker, Address peer);
  void inject(Address from, Address to, Message message) { enqueue(from, to, std::move(message)); }

  /// Hash of all actions in order; equal for equal seeds.
  std::uint64_t trace_hash() const { return hash_; }
  const std::optional<RunTotals>& totals() const { return totals_; }
  const Shard& shard(std::uint32_t index) const;
  std::uint64_t actions() const { return actions_; }
  bool is_alive(Address actor) const { return actors_.contains(actor); }

 private:
  class ActorOutbox;
  struct Actor {
    std::unique_ptr<Role> role;
    std::unique_ptr<ActorOutbox> outbox;
    std::deque<std::pair<std::shared_ptr<Work>, int>> work;
  };
  struct Timer {
    Instant at;
    std::uint64_t order;
    Address actor;
    TimerToken token;
    auto operator<=>(const Timer&) const = default;
  };
  /// An entry of a channel: a message, or the report that an actor has ended.
  struct Parcel {
    std::optional<sim::Letter> letter;
    Address down;
    EndReason reason;
  };

  void ended(const RunTotals& totals) override { totals_ = totals; }
  void add(Address address, std::unique_ptr<Role> role);
  void enqueue(Address from, Address to, Message message);
  bool act();
  void inject_faults();
  /// A random actor that the worker has a link to.
  Address any_peer(WorkerId worker);
  void deliver(Address from, Address to);
  void compute(Address address);
  bool fire_timer();
  template <class Handler>
  void guarded(Address address, Handler handler);
  std::vector<WorkerId> live_workers() const;
  std::string describe_waits() const;

  std::shared_ptr<const Job> job_;
  Rng rng_;
  FaultRates faults_;
  std::map<Address, Actor> actors_;
  std::map<std::pair<Address, Address>, std::deque<Parcel>> channels_;
  std::set<Timer> timers_;
  std::map<Address, std::set<Address>> watchers_;
  sim::Observers observers_;
  Instant now_;
  std::uint64_t next_timer_ = 0;
  std::uint64_t hash_ = 0;
  std::uint64_t actions_ = 0;
  std::uint64_t busy_actions_ = 0;  // actions other than reports to the monitor
  std::optional<RunTotals> totals_;
};

}  // namespace leeway::test
