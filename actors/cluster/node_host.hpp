#pragma once
// NodeHost: one node's part of a job. It knows where each actor of the job lives, starts the actors
// that are placed here, and exchanges messages with the actors of other nodes.
//
// It knows no network and decides nothing about the job: its owner sends its messages, delivers
// arriving ones, each once and in order, reports the state of each connection, and passes on the
// coordinator's orders to launch or end an actor here. Roles learn of other nodes by on_down: an
// actor has ended, or its node is silent or gone. An actor on a silent node may live on: the
// scheduler has evicted a worker then, and it joins again by itself; a shard is replaced by its
// standby, and ends when its node learns of it.
//
// Thread-safe. Of its callbacks only `send` may call back at once.
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <shared_mutex>
#include <string>
#include <vector>

#include "actors/cluster/actor_host.hpp"
#include "actors/cluster/placement.hpp"
#include "actors/monitor/monitor.hpp"

namespace leeway {

struct NodeHostOptions {
  Placement placement;
  NodeIndex self;
  std::vector<std::string> names;  // of the nodes; without a name, texts give the number
  Duration silence = seconds(2);   // after which a node counts as silent
  /// Calls a function soon, outside of all locks, after those of earlier calls.
  std::function<void(std::function<void()>)> later;
  /// Sends a message to an actor of another node. From many threads at once; never blocks.
  std::function<void(NodeIndex, Address from, Address to, Message)> send;
  /// An actor here has ended: all other nodes must call ended(). May be repeated.
  std::function<void(Address, std::uint32_t launch, const EndReason& reason)> on_end;
  /// An actor is launched here: all other nodes must call moved() before they get a message of
  /// the actor.
  std::function<void(Address, std::uint32_t launch)> on_launch;
};

class NodeHost final : public ActorHostEvents {
 public:
  struct HostedActor {
    Address actor;
    std::uint32_t launch = 0;
  };

  /// Adds the roles that are placed here to `host`; starts none. The program's node gives the
  /// monitor its audience.
  NodeHost(std::shared_ptr<const Job> job, std::vector<Audience*> audience, ActorHost& host,
           NodeHostOptions options);
  NodeHost(const NodeHost&) = delete;
  NodeHost& operator=(const NodeHost&) = delete;

  /// Starts all roles. Messages that arrived before have waited.
  void start();
  /// Delivers a message from another node. Refuses and counts it if the sender is not placed there,
  /// or the receiver not here. Hosts may send to any actor.
  void deliver(NodeIndex from_node, Address from, Address to, Message message);
  /// An actor of another node has ended. The end of an earlier launch changes nothing.
  void ended(Address actor, std::uint32_t launch, const EndReason& reason);

  // The state of the connection to a node.
  void silent(NodeIndex node);
  void heard(NodeIndex node);
  /// For good.
  void gone(NodeIndex node, const std::string& reason);

  /// Launches a worker or a standby here, unless the same or a later launch is known.
  void launch(Address actor, std::uint32_t launch);
  /// Ends an actor, if it is here in this launch.
  void end_launch(Address actor, std::uint32_t launch, const EndReason& reason);
  /// An actor is launched on another node. A shard is launched when its standby takes over.
  void moved(Address actor, NodeIndex node, std::uint32_t launch);

  /// Adds a node that joins or has a new connection, or names a known one. All other calls for it
  /// come later.
  void add_node(NodeIndex node, const std::string& name);

  NodeIndex node_of(Address actor) const;
  /// The last known launch of a worker, shard or standby; 0: none.
  std::uint32_t launch_of(Address actor) const;
  /// The workers, shards and standbys that are placed here, and have been launched.
  std::vector<HostedActor> hosted() const;
  /// The shards that are placed here, and the standbys that live here.
  std::vector<Address> replicas() const;
  /// Number of refused messages.
  std::uint64_t refused() const { return refused_; }

  void send_out(Address from, Address to, Message message) override;
  void watch_out(Address watcher, Address watched) override;
  void on_end(Address actor, const EndReason& reason) override;
  void on_take_over(ShardId shard) override;

 private:
  struct Node {
    enum class State : std::uint8_t { up, silent, gone };
    State state = State::up;
    EndReason reason;  // of `gone`
  };
  struct DownReport {
    Address watcher, actor;
    EndReason reason;
  };
  struct Letter {
    Address from, to;
    Message message;
  };

  void add_roles(std::vector<Audience*> audience);
  /// Notes the first launch of an actor, and adds its role if it is here.
  void add_role(Address actor);
  std::shared_ptr<Role> make_role(Address actor, std::uint32_t launch) const;
  /// False if none is left: then the host has started.
  bool take_early(std::vector<Letter>& early);

  bool is_here(Address actor) const { return options_.placement.node_of(actor) == options_.self; }
  std::string name_of(NodeIndex node) const;
  /// For each watched actor that `concerns`, one report for each watcher.
  template <class Concerns>
  std::vector<DownReport> down_reports(Concerns concerns, const EndReason& reason) const;
  /// For the living actors on a node.
  std::vector<DownReport> down_reports_of(NodeIndex node, const EndReason& reason) const;
  void report(const std::vector<DownReport>& reports);
  /// Notes the place of a launch. False if it is known already, or a later one.
  bool place(Address actor, NodeIndex node, std::uint32_t launch);

  const std::shared_ptr<const Job> job_;
  ActorHost& host_;
  NodeHostOptions options_;  // the placement changes under mutex_
  std::atomic<std::uint64_t> refused_{0};

  /// Guards all below. The host is not called under it.
  mutable std::shared_mutex mutex_;
  bool started_ = false;
  std::vector<Letter> early_;  // delivered before the start
  std::vector<Node> nodes_;
  std::map<Address, std::uint32_t> launches_;      // the last known
  std::map<Address, std::uint32_t> here_;          // the last that has begun here
  std::map<Address, std::set<Address>> watchers_;  // here, of actors on other nodes
  std::map<Address, EndReason> ended_;  // actors of other nodes, in their present launches
};

}  // namespace leeway
