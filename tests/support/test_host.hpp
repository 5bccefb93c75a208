#pragma once
// TestHost: runs the roles without CAF, one action at a time, in an order drawn from a seed.
//
// Each ordered pair of actors has a channel that keeps its order, except that a pull may overtake
// pushes. Computations are actions like deliveries. Time is virtual and moves only when nothing
// else is left to do. A worker may be killed, suspected wrongly (evicted while it lives), or have
// its link to a shard broken.
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

struct Trouble {
  // Chances, one in so many actions; 0: never.
  std::uint64_t kill_one_in = 0;
  std::uint64_t suspect_one_in = 0;
  std::uint64_t break_link_one_in = 0;  // of a worker; of a stage also to a stage beside it
  std::uint64_t garbage_one_in = 0;     // a message of random bytes, from anybody to anybody
  std::uint32_t workers_to_keep = 1;
};

class TestHost : public Audience {
 public:
  TestHost(std::shared_ptr<const Job> job, std::uint64_t seed, Trouble trouble = {});
  ~TestHost() override;

  void observe(std::shared_ptr<sim::Observer> observer) { observers_.add(std::move(observer)); }
  /// Runs to the end, and lets observers look at it. Throws CheckFailed when nothing is left to do
  /// before it, naming who waits for whom.
  RunTotals run();
  /// Runs up to `actions` further actions; false when the run has ended.
  bool run_some(int actions);

  void kill(Address actor);
  void suspect(WorkerId worker);
  /// Loses what is on its way between the two, or the first of it, and tells them.
  void break_link(Address worker, Address peer);
  void inject(Address from, Address to, Message message) { enqueue(from, to, std::move(message)); }

  /// Of every action in order: equal for equal seeds.
  std::uint64_t trace_hash() const { return hash_; }
  const std::optional<RunTotals>& totals() const { return totals_; }
  const Shard& shard(std::uint32_t index) const;
  std::uint64_t actions() const { return actions_; }
  bool lives(Address actor) const { return actors_.contains(actor); }

 private:
  class Box;
  struct Actor {
    std::unique_ptr<Role> role;
    std::unique_ptr<Box> box;
    std::deque<std::pair<std::shared_ptr<Work>, int>> work;
  };
  struct Timer {
    Instant at;
    std::uint64_t order;
    Address actor;
    TimerToken token;
    auto operator<=>(const Timer&) const = default;
  };
  /// What waits in a channel: a message, or the news that an actor has ended.
  struct Parcel {
    std::optional<sim::Letter> letter;
    Address down;
    std::string reason;
  };

  void ended(const RunTotals& totals) override { totals_ = totals; }
  void add(Address address, std::unique_ptr<Role> role);
  void enqueue(Address from, Address to, Message message);
  bool act();
  void make_trouble();
  /// Somebody that the worker has a link to.
  Address any_peer(WorkerId worker);
  void deliver(Address from, Address to);
  void compute(Address address);
  bool fire_timer();
  template <class Handler>
  void guarded(Address address, Handler handler);
  std::vector<WorkerId> live_workers() const;
  std::string who_waits() const;

  std::shared_ptr<const Job> job_;
  Rng rng_;
  Trouble trouble_;
  std::map<Address, Actor> actors_;
  std::map<std::pair<Address, Address>, std::deque<Parcel>> channels_;
  std::set<Timer> timers_;
  std::map<Address, std::set<Address>> watchers_;
  sim::Observers observers_;
  Instant now_;
  std::uint64_t next_timer_ = 0;
  std::uint64_t hash_ = 0;
  std::uint64_t actions_ = 0;
  std::uint64_t busy_actions_ = 0;  // those that were not only reports
  std::optional<RunTotals> totals_;
};

}  // namespace leeway::test
