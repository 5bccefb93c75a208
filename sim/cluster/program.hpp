#pragma once
// SimulatedProgram: the process of a program in a simulated cluster, with scheduler, monitor and
// coordinator: what Driver is on threads. It ends with its job. A competing program calls the same
// nodes, and gives up before its job starts.
#include <memory>
#include <string>
#include <vector>

#include "actors/cluster/coordinator.hpp"
#include "sim/cluster/process.hpp"

namespace leeway::sim {

class SimulatedProgram final : public SimulatedProcess, private Coordinator::Site {
 public:
  /// Prepares the job on the nodes of these names, and runs it unless it `competes`.
  SimulatedProgram(ClusterParts& parts, std::string name, const Placement& placement,
                   std::vector<std::string> nodes, std::vector<Audience*> audience,
                   bool competes = false);
  ~SimulatedProgram() override;

  const Coordinator& role() const { return coordinator_; }
  /// Sends to an actor, as the user of the program does.
  void send(Address to, Message message);
  /// The run has ended: the nodes are to end the job.
  void finish();
  /// Ends before its job has begun.
  void give_up();
  /// A fault of the plan starts a worker here again.
  void return_worker(WorkerId worker);

 private:
  /// Takes the steps of a program from phase to phase.
  void proceed();

  // SimulatedProcess
  void tick() override;
  void received(PeerId peer, std::uint64_t job, node::Body& body) override;
  void silent(PeerId peer) override { coordinator_.silent(peer); }
  void heard(PeerId peer) override { coordinator_.heard(peer); }
  void gone(PeerId peer, const std::string& reason) override;

  // Coordinator::Site
  std::int64_t now_ns() const override { return SimulatedProcess::now_ns(); }
  void say(const std::string&) override {}
  void call(NodeIndex node, const std::string& name) override;
  void send(PeerId peer, std::uint64_t job, node::Body body) override {
    SimulatedProcess::send(peer, job, std::move(body));
  }
  void leave(PeerId peer) override { parts_.network.leave(peer); }
  node::DataPiece piece(const node::DataMark& mark, std::int64_t first) override;
  std::int64_t last_file_request_ns() const override { return 0; }
  void accepted(NodeIndex, PeerId, const std::string&, const node::Answer&) override {}
  void has_left(NodeIndex, const std::string&) override {}
  void link(NodeIndex node, PeerId peer, const std::string& name) override;
  void unlink(NodeIndex node, const std::string& reason) override;
  void begin() override;
  void launch(Address actor, std::uint32_t launch) override;
  void end_launch(Address actor, std::uint32_t launch, const std::string& reason) override;
  void ask_to_leave(WorkerId worker) override;
  void report_lost(Address actor, const std::string& reason) override;

  Coordinator coordinator_;
  std::vector<Audience*> audience_;
  const bool competes_;
};

}  // namespace leeway::sim
