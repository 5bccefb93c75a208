#pragma once
// SimulatedAgent: the process of a node agent in a simulated cluster: what AgentProcess is on
// threads.
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "actors/cluster/agent.hpp"
#include "sim/cluster/process.hpp"

namespace leeway::sim {

class SimulatedAgent final : public SimulatedProcess, private Agent::Site {
 public:
  /// Listens under `name`. With a program to join, also calls it and offers to take workers.
  SimulatedAgent(ClusterParts& parts, std::string name, const std::string& join = {});
  ~SimulatedAgent() override;

  const Agent& role() const { return agent_; }
  /// Whether it has yet to be free, or to be answered by the program that it joins.
  bool is_occupied() const { return agent_.is_busy() || !join_.empty(); }
  /// When it had loaded the data of its present job; now, if it still loads it.
  Instant loaded_at() const {
    const Instant now = parts_.timeline.now();
    return reserved_ ? reserved_->loaded_at.value_or(now) : now;
  }
  /// How often it was given a job since that time.
  std::int64_t jobs_since(Instant time) const {
    return std::ranges::count_if(reserved_at_, [&](Instant at) { return at > time; });
  }
  std::string name() const override { return SimulatedProcess::name(); }
  /// The user ends the process: its workers stop before.
  void leave();
  /// A fault of the plan starts a worker here again.
  void return_worker(WorkerId worker);

 private:
  struct Reserved {
    PeerId program;
    std::uint64_t number = 0;
    node::Ask ask;
    std::int64_t samples = 0;          // that have arrived
    std::optional<Instant> loaded_at;  // empty: the data is being loaded
  };

  // SimulatedProcess
  void tick() override;
  void received(PeerId peer, std::uint64_t job, node::Body& body) override;
  void silent(PeerId peer) override { agent_.silent(peer); }
  void heard(PeerId peer) override { agent_.heard(peer); }
  void gone(PeerId peer, const std::string& reason) override { agent_.gone(peer, reason); }

  // Agent::Site
  std::int64_t now_ns() const override { return SimulatedProcess::now_ns(); }
  std::string time_of_day() const override { return "12:00:00"; }
  void say(const std::string&) override {}
  void warn(const std::string&) override {}
  void call(NodeIndex node, const std::string& name) override;
  void call_program() override;
  void send(PeerId peer, std::uint64_t job, node::Body body) override {
    SimulatedProcess::send(peer, job, std::move(body));
  }
  void leave(PeerId peer) override { parts_.network.leave(peer); }
  bool is_connected(PeerId peer) const override { return parts_.network.is_connected(peer); }
  bool reserve(PeerId program, std::uint64_t job, const node::Ask& ask,
               node::Answer& answer) override;
  void load_data() override;
  Expected<std::int64_t> store(const node::DataPiece& piece, bool& complete) override;
  void make_actors() override;
  void link(NodeIndex node, PeerId peer, const std::string& name) override;
  void begin() override;
  void launch(Address actor, std::uint32_t launch) override;
  void end_launch(Address actor, std::uint32_t launch, const std::string& reason) override;
  void moved(Address actor, NodeIndex node, std::uint32_t launch) override;
  std::vector<NodeHost::HostedActor> hosted() const override;
  bool has_replica() const override;
  void end_job(const std::string& reason) override;

  /// Calls after this time, unless the present job has ended by then.
  void later(Duration time, const std::function<void()>& call);
  /// Throws a Violation unless the agent may do what it does now.
  void require(bool allowed, const char* what) const;

  Agent agent_;
  const std::string join_;              // the program with whose job it ends; empty: none
  std::shared_ptr<Reserved> reserved_;  // null: free
  std::vector<Instant> reserved_at_;
};

}  // namespace leeway::sim
