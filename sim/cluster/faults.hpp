#pragma once
// ClusterFaults: injects the faults of a plan into a simulated cluster, each at its time or
// iteration.
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/agent.hpp"
#include "sim/cluster/program.hpp"
#include "sim/faults/fault.hpp"

namespace leeway::sim {

/// What the faults of a cluster act on.
class ClusterView {
 public:
  virtual ~ClusterView() = default;
  virtual ClusterParts& parts() = 0;
  virtual SimulatedProgram& program() = 0;
  /// The latest process of node 1, 2, ...; null before it starts.
  virtual SimulatedAgent* agent(std::uint32_t node) = 0;
  /// A new process of that node starts. With `joins` it offers to take workers; otherwise it waits
  /// for a call, like one that a service manager starts again.
  virtual void start_again(std::uint32_t node, bool joins) = 0;
  /// Another program starts, which calls the agents; the number makes its name.
  virtual SimulatedProgram& start_competitor(std::uint32_t number) = 0;
  /// The numbers of all nodes, the program's 0 first.
  virtual std::vector<std::uint32_t> nodes() const = 0;
};

class ClusterFaults final : public Observer {
 public:
  ClusterFaults(const std::vector<plan::Fault>& faults, ClusterView& cluster);

  /// Whether some fault begins at an iteration. Otherwise it need not observe.
  bool wait_for_iterations() const;
  /// The time of faults counts from now on.
  void arm();
  /// Another fault begins now.
  void inject(plan::Fault fault);
  /// Whether a fault is in progress, or has yet to begin at its time.
  bool pending() const { return pending_ > 0; }
  /// Whether a fault has killed the program.
  bool has_killed_program() const;
  /// Whether a fault has begun that can keep this node from taking part: of the node, of the
  /// program, between two processes of which it is one, or a competing program.
  bool has_disturbed(std::uint32_t node) const;
  /// When a fault last began or ended.
  Instant last_change() const { return last_change_; }

  void on_event(Instant at, Address actor, const Event& event) override;

 private:
  struct Waiting {
    std::optional<std::size_t> number;  // in the plan
    plan::Fault spec;
    bool begun = false;
  };
  struct Begin;
  void begin(Waiting& waiting);
  /// Calls `end` after that time.
  void after(double seconds, std::function<void()> end);

  /// The process of a node, or of the node on which a worker lives; null: none.
  SimulatedProcess* process_of(Address actor);
  /// Ends the fault `end` of two processes after `seconds`.
  void between(SimulatedProcess* a, SimulatedProcess* b, double seconds,
               void (ProcessNetwork::*on)(ProcessId, ProcessId),
               void (ProcessNetwork::*off)(ProcessId, ProcessId));
  void return_worker(Address worker);

  ClusterView& cluster_;
  std::deque<Waiting> faults_;
  int pending_ = 0;
  Instant last_change_;
};

}  // namespace leeway::sim
