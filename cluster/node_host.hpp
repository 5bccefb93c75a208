#pragma once
// NodeHost: one node's part of a job. It runs the actors that are placed here, on threads of this
// process, and exchanges messages with the actors of other nodes.
//
// It knows no network. Its owner sends its messages, delivers arriving ones, each once and in
// order, and reports the state of each connection. Roles learn of it by on_down:
//
// - An actor has ended, or its node is silent or gone: its watchers here get on_down. An actor on a
//   silent node may live on; the scheduler has evicted it then, and it comes back by itself.
// - A node with shards is away, but the scheduler's node is not: workers here would wait for ever,
//   as would stages for silent stages of their pipeline. After `patience` they are ended, and begin
//   their next life when all such nodes are heard again.
//
// Thread-safe. Of its callbacks only `send` may call back at once.
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <vector>

#include "actors/monitor/monitor.hpp"
#include "cluster/local_faults.hpp"
#include "cluster/local_host.hpp"
#include "cluster/pending_orders.hpp"
#include "cluster/placement.hpp"

namespace leeway {

/// Receivers of what happens at the actors. Many threads call them at once; each may be empty.
struct ActorObservers {
  std::function<void(Address, Instant, const Event&)> on_event;
  OnMessage on_message;
};

struct NodeHostOptions {
  Placement placement;
  NodeIndex self;
  std::vector<std::string> names;   // of the nodes; without a name, texts give the number
  Duration silence = seconds(2);    // after which a node counts as silent
  Duration patience = seconds(10);  // of workers for a node that is away
  unsigned pool_threads = 0;        // 0: one a core
  /// Called for every event of this node, from many threads at once; may be empty.
  std::function<void(Address, Instant, const Event&)> on_event;
  /// Called for every message that reaches an actor of this node, likewise.
  OnMessage on_message;
  /// Sends a message to an actor of another node. From many threads at once; never blocks.
  std::function<void(NodeIndex, Address from, Address to, Message)> send;
  /// An actor here has ended: all other nodes must call ended(). May be repeated.
  std::function<void(Address, std::uint32_t life, const EndReason& reason)> on_end;
  /// A worker here has begun a life by itself: all other nodes must call moved().
  std::function<void(WorkerId, std::uint32_t life)> on_life;
};

class NodeHost {
 public:
  /// Adds the roles that are placed here; starts none. The program's node gives the monitor its
  /// audience.
  NodeHost(std::shared_ptr<const Job> job, std::vector<Audience*> audience,
           NodeHostOptions options);
  /// Ends all actors here and waits for them, without on_end.
  ~NodeHost();
  NodeHost(const NodeHost&) = delete;
  NodeHost& operator=(const NodeHost&) = delete;

  /// Starts all roles. Messages that arrived before have waited.
  void start();
  /// Sends as the host itself, to an actor on any node.
  void send(Address to, Message message);
  /// Delivers a message from another node. Refuses and counts it if the sender is not placed there,
  /// or the receiver not here. Hosts may send to any actor.
  void deliver(NodeIndex from_node, Address from, Address to, Message message);
  /// An actor of another node has ended. The end of an earlier life changes nothing.
  void ended(Address actor, std::uint32_t life, const EndReason& reason);

  // The state of the connection to a node.
  void silent(NodeIndex node);
  void heard(NodeIndex node);
  /// For good.
  void gone(NodeIndex node, const std::string& reason);

  /// The next life of a worker is on `node`, and begins if that is this node. All other nodes must
  /// know before: they refuse messages of a worker from another place.
  void moved(WorkerId worker, NodeIndex node, std::uint32_t life);

  /// Adds a node that joins, or names a known one. All other calls for it come later.
  void add_node(NodeIndex node, const std::string& name);

  NodeIndex node_of(Address actor) const;
  /// The last known life of a worker; 0 before its first.
  std::uint32_t life_of(WorkerId worker) const;
  /// Number of refused messages.
  std::uint64_t refused() const { return refused_; }
  /// Why an actor here has ended; none while it runs.
  std::optional<EndReason> end_reason(Address actor) const { return host_->end_reason(actor); }
  bool lives(Address actor) const { return host_->lives(actor); }
  Instant now() const { return host_->now(); }

 private:
  struct Node {
    enum class State : std::uint8_t { up, silent, gone };
    State state = State::up;
    std::uint64_t absence = 0;  // number of the present absence; 0: it is up
    EndReason reason;           // of `gone`
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
  LocalHost::Options host_options();
  /// False if none is left: then the host has started.
  bool take_early(std::vector<Letter>& early);
  // Requests of the actors here.
  void send_out(Address from, Address to, Message message);
  void watch_out(Address watcher, Address watched);
  void note_end(Address actor, const EndReason& reason);

  bool is_here(Address actor) const { return options_.placement.node_of(actor) == options_.self; }
  std::string name_of(NodeIndex node) const;
  /// For each watched actor that `concerns`, one report for each watcher.
  template <class Concerns>
  std::vector<DownReport> down_reports(Concerns concerns, const EndReason& reason) const;
  void report(const std::vector<DownReport>& reports);
  /// If the node is away: its shard, or stage of the worker's pipeline, for which the worker waits.
  std::optional<Address> missed_at(NodeIndex node, WorkerId worker) const;
  void begin_absence(NodeIndex node);
  /// Both on the thread of the orders.
  void give_up_waiting(NodeIndex node, std::uint64_t absence);
  void go_on_waiting();
  void begin_life(WorkerId worker);
  std::shared_ptr<Role> next_life(WorkerId worker);

  const std::shared_ptr<const Job> job_;
  NodeHostOptions options_;  // the placement changes under mutex_
  std::atomic<std::uint64_t> refused_{0};

  /// Guards all below, down to orders_. The host is not called under it.
  mutable std::shared_mutex mutex_;
  bool started_ = false;
  std::vector<Letter> early_;  // delivered before the start
  std::vector<Node> nodes_;
  std::uint64_t absences_ = 0;
  std::map<WorkerId, std::uint32_t> lives_;        // the last known
  std::map<WorkerId, std::uint32_t> here_;         // the last that was begun here
  std::map<Address, std::set<Address>> watchers_;  // here, of actors on other nodes
  std::map<Address, EndReason> ended_;             // actors of other nodes, in their present lives
  std::map<Address, std::pair<std::uint32_t, EndReason>> ended_here_;
  std::set<WorkerId> waiting_;  // ended here until all nodes that they miss are heard

  PendingOrders orders_;
  std::optional<LocalFaults> faults_;
  /// Last: its actors use all of the above, and host_ itself, until they have ended. So it is not
  /// reset().
  std::unique_ptr<LocalHost> host_;
};

}  // namespace leeway
