#pragma once
// SimulatedProcess: a process of a simulated cluster: a program or a node agent. It can be frozen
// or killed at any time.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/job.hpp"
#include "messages/node.hpp"
#include "sim/cluster/launches.hpp"
#include "sim/cluster/process_network.hpp"
#include "sim/trace.hpp"

namespace leeway::sim {

class SimulatedNode;

/// What all processes of a simulated cluster share.
struct ClusterParts {
  std::shared_ptr<const Job> job;
  World world;
  Duration silence;  // after which a process reports that it does not hear another
  Duration tensors;  // that all workers' weights and gradients of an iteration take on one link
  Timeline timeline;
  ProcessNetwork network;
  std::shared_ptr<Observers> observers;
  Launches launches;
  Trace trace;
  Rng random;
  std::function<void()> on_begin;  // the actors of the program begin
  /// A limit that is `seconds` in a real cluster, whose silence limit is 2 s, when messages and
  /// tensors on a link take as small a part of it.
  Duration limit(double seconds) const;
  /// Called for every event of the present launches; may be empty.
  std::function<void(Address, Instant, const Event&)> on_event;

  ClusterParts(std::shared_ptr<const Job> of, std::vector<std::shared_ptr<Observer>> watching,
               const Trace::Options& tracing);
};

class SimulatedProcess : private ProcessNetwork::Process {
 public:
  SimulatedProcess(ClusterParts& parts, std::string name);
  ~SimulatedProcess() override;
  SimulatedProcess(const SimulatedProcess&) = delete;
  SimulatedProcess& operator=(const SimulatedProcess&) = delete;

  ProcessId id() const { return id_; }
  const std::string& name() const { return parts_.network.name(id_); }
  bool has_ended() const { return ended_; }
  bool is_frozen() const { return freezes_ > 0; }
  /// Its part of the job; null: none.
  SimulatedNode* part() const { return part_.get(); }
  /// Calls `call` when the process runs: at once, unless it is frozen; never if it ends before.
  void enter(const std::function<void()>& call);
  /// Adds a call to the queue of the process, whose thread may be late.
  void post(std::function<void()> call);

  // Faults.
  void kill() { end(true); }
  void freeze();
  void thaw();

 protected:
  /// Calls tick() regularly until the process ends.
  void start_ticking();
  virtual void tick() = 0;
  virtual void received(PeerId peer, std::uint64_t job, node::Body& body) = 0;
  virtual void silent(PeerId peer) = 0;
  virtual void heard(PeerId peer) = 0;
  virtual void gone(PeerId peer, const std::string& reason) = 0;

  void send(PeerId peer, std::uint64_t job, node::Body body);
  void call(const std::string& name, std::function<void(const Expected<PeerId>&)> then);
  void set_part(std::unique_ptr<SimulatedNode> part);
  /// On a steady clock of this machine, which does not begin with the run.
  std::int64_t now_ns() const { return parts_.timeline.now().ns + seconds(1).ns; }
  /// The process ends by itself, after its messages have left.
  void exit() { end(false); }

  ClusterParts& parts_;

 private:
  void end(bool killed);
  void on_message(PeerId peer, Address from, Address to, Message message) override;
  void on_silent(PeerId peer) override;
  void on_heard(PeerId peer) override;
  void on_gone(PeerId peer, const std::string& reason) override;

  const ProcessId id_;
  bool ended_ = false;
  Instant queued_until_;
  std::uint32_t freezes_ = 0;
  std::vector<std::function<void()>> waiting_;  // while it is frozen
  std::unique_ptr<SimulatedNode> part_;
};

}  // namespace leeway::sim
