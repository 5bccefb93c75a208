#pragma once
// SimulatedNode: one node's part of a job in a simulated cluster: what JobNode is on threads.
#include <memory>
#include <string>
#include <vector>

#include "actors/cluster/job_routes.hpp"
#include "sim/cluster/process.hpp"
#include "sim/simulator.hpp"

namespace leeway::sim {

class SimulatedNode final : private ActorHostEvents {
 public:
  struct Options {
    std::uint64_t number = 0;  // of the job
    Placement placement;
    NodeIndex self;
    std::vector<std::string> names;  // of all nodes
    /// Of the program: as in JobRoutes::Options, and the events of the scheduler.
    std::function<void(Address, std::uint32_t launch)> on_ended = {};
    std::function<void(const Event&)> on_scheduler_event = {};
  };

  /// Adds the roles that are placed here; starts none. `process` outlives the node.
  SimulatedNode(ClusterParts& parts, SimulatedProcess& process, std::vector<Audience*> audience,
                const Options& options);
  /// The actors here end with their process.
  ~SimulatedNode() override;

  void start();
  JobRoutes& routes() { return routes_; }
  NodeHost& node() { return *node_; }
  Simulator& host() { return *host_; }
  const Simulator& host() const { return *host_; }
  bool has_started() const { return started_; }

 private:
  Simulator::Options host_options(const Options& options);
  void send_out(Address from, Address to, Message message) override {
    node_->send_out(from, to, std::move(message));
  }
  void watch_out(Address watcher, Address watched) override { node_->watch_out(watcher, watched); }
  void on_end(Address actor, const EndReason& reason) override { node_->on_end(actor, reason); }
  void on_take_over(ShardId shard) override { node_->on_take_over(shard); }

  ClusterParts& parts_;
  SimulatedProcess& process_;
  const std::shared_ptr<Presence> presence_;
  bool started_ = false;
  JobRoutes routes_;
  std::unique_ptr<Simulator> host_;
  std::unique_ptr<NodeHost> node_;
  /// Calls that were posted for this node end with it.
  const std::shared_ptr<bool> exists_ = std::make_shared<bool>(true);
};

}  // namespace leeway::sim
