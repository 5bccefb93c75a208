#pragma once
// Checkers of the properties in docs/staleness.md, each with its own bookkeeping, independent of
// the roles'.
#include <map>
#include <set>

#include "tests/support/test_host.hpp"

namespace leeway::test {

/// Properties 1 and 2: no pull is answered against the rule; clocks and min_clock never decrease.
class RuleChecker final : public Observer {
 public:
  explicit RuleChecker(const Job& job) : job_(job) {}
  void on_event(Address actor, const Event& event) override;
  void on_delivered(Address from, Address to, const Envelope& envelope) override;
  std::uint64_t answered() const { return answered_; }

 private:
  struct ShardView {
    std::map<WorkerId, std::int64_t> live;      // clocks of the live
    std::map<WorkerId, std::int64_t> greatest;  // largest clock each ever had
    std::int64_t min_clock = 0;
    std::map<std::pair<WorkerId, Iteration>, std::int64_t> own_clock;  // of the pulls that came
  };
  void move(ShardView& view, WorkerId worker, std::int64_t clock);
  const Job& job_;
  std::map<Address, ShardView> shards_;
  std::uint64_t answered_ = 0;
};

/// Property 3: every acknowledged part is applied exactly once, across retry, reconnect, crash and
/// view change.
class ExactlyOnceChecker final : public Observer {
 public:
  void on_event(Address actor, const Event& event) override;
  void on_delivered(Address from, Address to, const Envelope& envelope) override;
  std::uint64_t applied() const { return applied_.size(); }

 private:
  // shard, worker and its life, iteration, part
  std::set<std::tuple<Address, WorkerId, Incarnation, Iteration, std::uint32_t>> applied_;
};

/// Property 4: every parked pull is answered, or its worker is told why not (or has given it up
/// itself).
class ParkedChecker final : public Observer {
 public:
  void on_event(Address actor, const Event& event) override;
  void on_sent(Address from, Address to, const Envelope& envelope) override;
  /// After a run: nobody who lives was left waiting.
  void check_end(const TestHost& host) const;

 private:
  std::map<WorkerId, std::set<std::pair<Address, Iteration>>> parked_;
};

/// Property 6: each sample is trained exactly once per epoch, by the scheduler's account; and the
/// shards applied as many samples as that says, those of torn pushes aside.
class SampleChecker final : public Observer {
 public:
  explicit SampleChecker(const Job& job) : job_(job) {}
  void on_event(Address actor, const Event& event) override;
  /// After a run that finished.
  void check_end(const RunTotals& totals) const;

 private:
  const Job& job_;
  std::map<Epoch, std::vector<int>> trained_;
  std::map<std::pair<Address, std::int64_t>, std::uint64_t> applied_;  // by shard and part
};

/// Property 5: a cut is the sum of all pushes below it. For plain SGD at a constant rate.
class CutChecker final : public Observer {
 public:
  explicit CutChecker(const Job& job) : job_(job) {}
  void on_event(Address actor, const Event& event) override;
  void on_sent(Address from, Address to, const Envelope& envelope) override;
  void on_delivered(Address from, Address to, const Envelope& envelope) override;
  std::uint64_t cuts() const { return cuts_; }

 private:
  struct Applied {
    Iteration iteration;
    std::vector<msg::BlockData> blocks;
    double weight = 0;
  };
  const Job& job_;
  // What was pushed, by shard, worker, iteration and part; the newest life counts.
  std::map<std::tuple<Address, WorkerId, Iteration, std::uint32_t>, msg::Push> pushed_;
  std::map<Address, std::vector<Applied>> applied_;
  std::uint64_t cuts_ = 0;
};

}  // namespace leeway::test
