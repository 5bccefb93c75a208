#pragma once
// JobRoutes: the connections of one node to the other nodes of a job, and what travels on them
// besides the orders of the coordinator: messages between actors, and the ends and launches of
// actors.
//
// It knows no network: its owner sends, and reports the state of each connection. It ignores peers
// that are no node of the job. Thread-safe.
#include <functional>
#include <map>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "actors/cluster/node_host.hpp"
#include "messages/node.hpp"

namespace leeway {

class JobRoutes {
 public:
  struct Options {
    std::uint64_t number = 0;  // of the job
    NodeIndex self;
    std::vector<std::string> names;  // of all nodes
    /// Sends to an actor of another process, or to its host. From many threads at once; never
    /// blocks.
    std::function<void(PeerId, Address from, Address to, Message)> send;
    /// An actor here or on another node has ended; may be empty. From many threads at once.
    std::function<void(Address, std::uint32_t launch)> on_ended = {};
  };
  struct Link {
    PeerId peer;
    const char* state = "up";
    bool gone = false;
  };

  explicit JobRoutes(Options options) : options_(std::move(options)) {}
  JobRoutes(const JobRoutes&) = delete;
  JobRoutes& operator=(const JobRoutes&) = delete;

  /// The options of the node host whose routes these are: what it sends, and to whom.
  NodeHostOptions host_options(const Placement& placement, Duration silence);
  /// Names that node host. Before all calls below.
  void attach(NodeHost& host) { host_ = &host; }

  /// Adds the connection to a node, which may have joined after the start, or lost an earlier one.
  void link(NodeIndex node, PeerId peer, const std::string& name);
  /// The node is lost for good, although its connection may live.
  void unlink(NodeIndex node, const std::string& reason);
  /// The node's peer, if the node is linked and not gone.
  std::optional<PeerId> peer_of(NodeIndex node) const;
  std::optional<NodeIndex> node_of(PeerId peer) const;

  // What the connections bring.
  void on_message(PeerId peer, Address from, Address to, Message message);
  /// Takes what another node sends about its actors, in the order of their messages. False for
  /// other messages.
  bool on_notice(PeerId peer, const NodeEnvelope& envelope);
  void on_silent(PeerId peer);
  void on_heard(PeerId peer);
  void on_gone(PeerId peer, const std::string& reason);

  /// An actor is launched on another node. Ignores an actor or node that the job does not have.
  void moved(Address actor, NodeIndex node, std::uint32_t launch);

  NodeIndex self() const { return options_.self; }
  std::vector<std::string> names() const;
  std::map<NodeIndex, Link> links() const;

 private:
  /// Sends to the hosts of all linked nodes.
  void broadcast(const node::Body& body);
  /// Sets the state of the peer's link. Returns the node if it is one of the job's.
  std::optional<NodeIndex> mark(PeerId peer, const char* state, bool gone);

  NodeHost* host_ = nullptr;
  Placement placement_;              // the first; its actors are those of the job
  mutable std::shared_mutex mutex_;  // guards the names and the links
  Options options_;
  std::map<NodeIndex, Link> links_;
};

}  // namespace leeway
