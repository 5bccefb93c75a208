#pragma once
// A cluster in one process: nodes with simulated wires that can hold messages. Tests
// report the state of the wires to the nodes.
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cluster/local_node.hpp"
#include "cluster/record_filter.hpp"
#include "messages/envelope.hpp"
#include "messages/event_queries.hpp"
#include "tests/cluster/sample_counts.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {

class Cluster : public Audience {
 public:
  struct Options {
    std::uint32_t agents = 2;
    std::string place;
  };

  /// Each node has its own Job, as in separate processes.
  Cluster(const Plan& plan, const Options& options) : checker_(job_of(plan)) {
    const auto placement = place_actors(options.agents, plan, options.place);
    LW_CHECK(bool(placement), placement ? std::string() : placement.error().text);
    const std::uint32_t nodes = options.agents + 1;
    wires_.resize(nodes * nodes);
    for (std::uint32_t node = 0; node < nodes; ++node)
      hosts_.push_back(std::make_unique<LocalNode>(
          job_of(plan), node == 0 ? std::vector<Audience*>{this} : std::vector<Audience*>{},
          options_of(node, *placement)));
  }
  ~Cluster() override {
    for (std::uint32_t node = 0; node < hosts_.size(); ++node) end_process(node);
  }

  void start() {
    // Agents start first, so that messages reach the program's node before it has started.
    for (std::size_t node = hosts_.size(); node-- > 0;) hosts_[node]->start();
  }
  LocalNode& host(std::uint32_t node) { return *hosts_[node]; }
  NodeHost& node(std::uint32_t node) { return hosts_[node]->node(); }

  // ---- faults ----

  /// Messages between the two wait.
  void hold(std::uint32_t a, std::uint32_t b) { set(a, b, true); }
  void release(std::uint32_t a, std::uint32_t b) { set(a, b, false); }
  /// Kills the node's process; all other nodes detect it.
  void kill_node(std::uint32_t node) {
    end_process(node);
    for (std::uint32_t other = 0; other < hosts_.size(); ++other)
      if (hosts_[other]) hosts_[other]->node().gone(NodeIndex(node), "its process ended");
  }

  // ---- events ----

  /// Waits until `actor` has emitted this event of `worker` `times` times. False after the time
  /// limit.
  template <class T>
  bool wait_for(Address actor, WorkerId worker, int times = 1) {
    return wait([&] { return count_locked(actor, T{}, worker) >= times; });
  }
  template <class T>
  int count(Address actor, WorkerId worker) {
    std::lock_guard lock(mutex_);
    return count_locked(actor, T{}, worker);
  }
  bool wait_for_evaluation() {
    return wait([&] { return evaluations_ > 0; });
  }
  /// The totals of the run, after the checks of its events.
  RunTotals wait_for_end() {
    const bool ended_in_time = wait([&] { return totals_.has_value(); });
    LW_CHECK(ended_in_time, "the run did not end in time");
    std::lock_guard lock(mutex_);
    try {
      checker_.on_run_ended(*totals_);
    } catch (const sim::Violation& violation) {
      violation_ = violation.what();
    }
    LW_CHECK(violation_.empty(), violation_);
    return *totals_;
  }
  /// Waits until the monitor has reported this change of a shard's replicas `times` times.
  bool wait_for_change(msg::ReplicasChanged::Change change, int times = 1) {
    const bool changed = wait([&] { return changes_[change] >= times || totals_; });
    std::lock_guard lock(mutex_);
    if (!changed) UNSCOPED_INFO(violation_);
    if (totals_) UNSCOPED_INFO(totals_->end.text);
    return changed && changes_[change] >= times;
  }
  std::string evicted_for(WorkerId worker) {
    std::lock_guard lock(mutex_);
    return evicted_[worker];
  }

  void evaluated(const EvaluationResult&) override {
    std::lock_guard lock(mutex_);
    ++evaluations_;
    changed_.notify_all();
  }
  void evicted(WorkerId worker, const msg::Evicted& evicted) override {
    std::lock_guard lock(mutex_);
    evicted_[worker] = evicted.reason;
  }
  void replicas_changed(const msg::ReplicasChanged& changed) override {
    std::lock_guard lock(mutex_);
    ++changes_[changed.change];
    changed_.notify_all();
  }
  void ended(const RunTotals& totals) override {
    std::lock_guard lock(mutex_);
    totals_ = totals;
    changed_.notify_all();
  }

 private:
  struct Letter {
    Address from, to;
    Message message;
  };
  struct Wire {
    bool held = false;
    std::vector<Letter> kept;
  };

  LocalNode::Options options_of(std::uint32_t node, const Placement& placement) {
    LocalNode::Options made;
    made.node.placement = placement;
    made.node.self = NodeIndex(node);
    made.node.names = {"program:1", "a:4242", "b:4242", "c:4242"};
    made.observers.on_event = [this](Address actor, Instant at, const Event& event,
                                     std::uint64_t record) {
      if (records_.is_new(actor, record)) happened(actor, at, event);
    };
    made.node.send = [this, node](NodeIndex to_node, Address from, Address to, Message message) {
      send(node, to_node.value(), {from, to, std::move(message)});
    };
    made.node.on_end = [this, node](Address actor, std::uint32_t launch, const EndReason& reason) {
      to_others(node, [&](NodeHost& other) { other.ended(actor, launch, reason); });
    };
    made.node.on_launch = [this, node](Address actor, std::uint32_t launch) {
      to_others(node, [&](NodeHost& other) { other.moved(actor, NodeIndex(node), launch); });
    };
    return made;
  }

  template <class Tell>
  void to_others(std::uint32_t node, Tell tell) {
    std::lock_guard lock(wires_mutex_);
    for (std::uint32_t other = 0; other < hosts_.size(); ++other)
      if (other != node && hosts_[other]) tell(hosts_[other]->node());
  }

  Wire& wire(std::uint32_t from, std::uint32_t to) { return wires_[from * hosts_.size() + to]; }
  void send(std::uint32_t from, std::uint32_t to, Letter letter) {
    std::lock_guard lock(wires_mutex_);
    auto& between = wire(from, to);
    if (between.held) return between.kept.push_back(std::move(letter));
    hand_over(from, to, std::move(letter));
  }
  void hand_over(std::uint32_t from, std::uint32_t to, Letter letter) {
    if (hosts_[to])
      hosts_[to]->node().deliver(NodeIndex(from), letter.from, letter.to,
                                 std::move(letter.message));
  }
  void set(std::uint32_t a, std::uint32_t b, bool held) {
    std::lock_guard lock(wires_mutex_);
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      auto& between = wire(from, to);
      between.held = held;
      if (held) continue;
      for (auto& letter : std::exchange(between.kept, {})) hand_over(from, to, std::move(letter));
    }
  }
  void end_process(std::uint32_t node) {
    std::unique_ptr<LocalNode> ending;
    std::lock_guard one_at_a_time(ending_mutex_);
    {
      std::lock_guard lock(wires_mutex_);
      ending = std::move(hosts_[node]);
    }
  }

  template <class Condition>
  bool wait(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return condition() || !violation_.empty(); }) &&
           violation_.empty();
  }
  int count_locked(Address actor, const Event& type, WorkerId worker) {
    return events_[{actor, type.index(), worker}];
  }
  void happened(Address actor, Instant at, const Event& event) {
    std::lock_guard lock(mutex_);
    if (const auto worker = worker_of(event)) ++events_[{actor, event.index(), *worker}];
    try {
      checker_.on_event(at, actor, event);
    } catch (const sim::Violation& violation) {
      violation_ = violation.what();
    }
    changed_.notify_all();
  }

  std::mutex wires_mutex_;
  std::mutex ending_mutex_;
  std::vector<Wire> wires_;

  RecordFilter records_;
  std::mutex mutex_;
  std::condition_variable changed_;
  SampleCounts checker_;
  std::string violation_;
  std::map<std::tuple<Address, std::size_t, WorkerId>, int> events_;  // by index of the type
  std::map<WorkerId, std::string> evicted_;
  std::map<msg::ReplicasChanged::Change, int> changes_;
  int evaluations_ = 0;
  std::optional<RunTotals> totals_;

  std::vector<std::unique_ptr<LocalNode>> hosts_;
};

}  // namespace leeway::test
