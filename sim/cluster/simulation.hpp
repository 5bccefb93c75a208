#pragma once
// ClusterSimulation: a run of a job on simulated processes: a program and node agents, with all
// that a real cluster has between them but sockets and threads, under all checkers.
//
// A process is a Simulator for its actors. All processes share one virtual time.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/faults.hpp"
#include "sim/simulation.hpp"

namespace leeway::sim {

/// Checks the place of each actor in a simulated cluster. The error names the wrong item.
Status check_place(const Plan& plan);

class ClusterSimulation final : private ClusterView {
 public:
  /// Requires a plan with a simulated world of agents. The monitor reports to `audience`.
  ClusterSimulation(std::shared_ptr<const Job> job, std::vector<Audience*> audience,
                    SimulationOptions options = {});
  ~ClusterSimulation() override;

  /// Like Simulation::run(). After the end of the job, continues until all nodes are free.
  std::string run(const std::function<void()>& look = {});
  /// Sends to an actor of the program, as its user does.
  void send(Address to, Message message) { program_->send(to, std::move(message)); }
  /// Handles one event of one process.
  void step();

  bool ended() const { return ending_.totals.has_value(); }
  /// After run(): whether the run has no totals because of its faults: they have kept the job from
  /// starting, or killed the program.
  bool is_cut_short() const { return cut_short_; }
  const RunTotals& totals() const { return *ending_.totals; }
  const Trace& trace() const { return parts_->trace; }
  Instant now() const { return parts_->timeline.now(); }
  /// The process of node 1, 2, ... that started last.
  const SimulatedAgent& node(std::uint32_t number) { return *agent(number); }
  /// The number of the last node.
  std::uint32_t last_node() const { return nodes_.back().number; }
  /// Calls a function after that time, between two events.
  void after(Duration time, std::function<void()> call) {
    parts_->timeline.after(time, std::move(call));
  }
  /// A fault begins now.
  void inject(plan::Fault fault) { faults_->inject(std::move(fault)); }

 private:
  struct Ending final : Audience {
    void ended(const RunTotals& end) override { totals = end; }
    std::optional<RunTotals> totals;
  };
  struct Node {
    std::uint32_t number = 0;
    std::vector<std::unique_ptr<SimulatedAgent>> processes;  // the last one is present
  };

  // ClusterView
  ClusterParts& parts() override { return *parts_; }
  SimulatedProgram& program() override { return *program_; }
  SimulatedAgent* agent(std::uint32_t node) override;
  void start_again(std::uint32_t node, bool joins) override;
  SimulatedProgram& start_competitor(std::uint32_t number) override;
  std::vector<std::uint32_t> nodes() const override;

  static std::string name_of(std::uint32_t node);
  std::unique_ptr<SimulatedProgram> make_program(std::string name, std::vector<Audience*> audience,
                                                 bool competes);
  std::vector<std::shared_ptr<Observer>> observers_of(const SimulationOptions& options);
  template <class Call>
  void each_process(Call call) const;
  /// Why the run is stuck; empty if it is not.
  std::string stuck() const;
  /// Whether faults have killed the program, or have kept a node from taking part without which its
  /// job does not start.
  bool is_ended_by_faults() const;
  /// The names of nodes that are not free, although they can be.
  std::string occupied_nodes() const;
  void free_nodes();
  /// Throws a Violation if, long after the last fault, a worker does not live on its node.
  void check_workers() const;
  /// Likewise if a shard has no standby, and a node could have it.
  void check_standbys() const;
  /// The process with that number in the job; null: it has ended, or left.
  const SimulatedAgent* process_at(leeway::NodeIndex place) const;
  /// Whether a node has been given workers, and has yet to reach all other nodes.
  bool has_joining_node() const;
  /// A node that could take a worker; empty: none.
  std::string free_node() const;
  /// Whether a fault of the plan, or a node that leaves, may have ended the worker for good.
  bool may_have_ended(WorkerId worker) const;

  /// Notices the end of the training. What follows, an evaluation, may take long.
  struct TrainingEnd final : Observer {
    bool has_come = false;
    void on_sent(Instant, const Letter& letter) override {
      if (letter.from() == kScheduler && letter.to() == kMonitor && letter.as<msg::RunEnded>())
        has_come = true;
    }
  };

  std::shared_ptr<const Job> job_;
  bool cut_short_ = false;
  Ending ending_;
  const std::shared_ptr<TrainingEnd> training_end_ = std::make_shared<TrainingEnd>();
  std::shared_ptr<ClusterFaults> faults_;
  std::unique_ptr<ClusterParts> parts_;
  std::vector<Node> nodes_;  // by number from 1
  std::unique_ptr<SimulatedProgram> program_;
  std::vector<std::unique_ptr<SimulatedProgram>> competitors_;
};

}  // namespace leeway::sim
