#pragma once
// NodeHost: one node's part of a job: the actors that are placed here, on threads of this process,
// and the way to those of the other nodes.
//
// It knows no network: whoever owns it hands on what it sends, gives it what arrives, and tells it
// what became of the connections. From that it makes what roles are told, on_down and on_link, as
// the simulator does:
//
// - an actor has ended, or its node is silent or gone: whoever watches it here is told that it is
//   down. One that was only silent may live on; the scheduler has evicted it then, and it comes
//   back by itself.
// - the connection to a node was made again: what was under way is lost. Workers and those whom
//   they talk with are told, and say it again; stages of one pipeline begin again together. Between
//   the scheduler and a shard nothing is said again: the shard counts as lost, and the run ends.
// - a node with shards is away, and only the scheduler's is not: workers here would wait for ever,
//   as do stages for those of their pipeline that are silent. After a while they are ended, and
//   begin their next life when all such nodes are heard.
//
// Thread-safe. Nothing that it calls may call it back in the same breath, but for `send`.
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
#include "cluster/agenda.hpp"
#include "cluster/local_faults.hpp"
#include "cluster/local_host.hpp"
#include "cluster/placement.hpp"

namespace leeway {

struct NodeHostOptions {
  Placement placement;
  NodeIndex self;
  std::vector<std::string> names;   // of the nodes, in texts; those without are told by number
  Duration silence = seconds(2);    // how long a node that is silent has not been heard
  Duration patience = seconds(10);  // how long workers wait for a node that is away
  unsigned pool_threads = 0;        // 0: one a core
  /// Called for every event here, from many threads at once; may be empty.
  std::function<void(Address, Instant, const Event&)> on_event;
  /// Takes a message to an actor of another node. From many threads at once; never blocks.
  std::function<void(NodeIndex, Address from, Address to, Message)> send;
  /// An actor here has ended: to be told to all other nodes, which call ended(). May be said again.
  std::function<void(Address, std::uint32_t life, const std::string& reason)> on_end;
  /// A worker here has begun a life by itself: to be told to all other nodes, which call moved().
  std::function<void(WorkerId, std::uint32_t life)> on_life;
};

class NodeHost {
 public:
  /// Adds the roles that are placed here, and starts nothing. The audience is the monitor's, on the
  /// program's node.
  NodeHost(std::shared_ptr<const Job> job, std::vector<Audience*> audience,
           NodeHostOptions options);
  /// Ends all actors here and waits for them. on_end is not called for these.
  ~NodeHost();
  NodeHost(const NodeHost&) = delete;
  NodeHost& operator=(const NodeHost&) = delete;

  /// What has been delivered before waits until now.
  void start();
  /// Sends as the host itself, wherever the actor is.
  void send(Address to, Message message);
  /// From another node. What is not from an actor that is placed there, or not for one that is
  /// placed here, is refused and counted. Hosts may send to any actor.
  void deliver(NodeIndex from_node, Address from, Address to, Message message);
  /// An actor of another node has ended. Of a life before the present one it is news to nobody.
  void ended(Address actor, std::uint32_t life, const std::string& reason);

  // What happened to the connection to a node.
  void silent(NodeIndex node);
  void heard(NodeIndex node);
  /// Also when it was silent before.
  void reconnected(NodeIndex node);
  /// For good.
  void gone(NodeIndex node, const std::string& reason);

  /// The next life of a worker is on that node; if that is this one, it is begun. All other nodes
  /// are to be told before: they refuse what comes of it from where they do not know it to be.
  void moved(WorkerId worker, NodeIndex node, std::uint32_t life);

  /// A node that joins, or is there already. All else that is told of one is told after this.
  void add_node(NodeIndex node, const std::string& name);

  NodeIndex node_of(Address actor) const;
  /// The last life of a worker that is known here; 0: it has yet to come.
  std::uint32_t life_of(WorkerId worker) const;
  /// Messages that were refused.
  std::uint64_t refused() const { return refused_; }
  /// Why an actor here has ended; empty while it runs.
  std::string end_reason(Address actor) const { return host_->end_reason(actor); }
  bool lives(Address actor) const { return host_->lives(actor); }
  Instant now() const { return host_->now(); }

 private:
  struct Node {
    enum class State : std::uint8_t { up, silent, gone };
    State state = State::up;
    std::uint64_t absence = 0;  // number of the present one; 0: it is up
    std::string reason;         // why it is gone
  };
  struct News {
    Address watcher, actor;
    std::string reason;
  };
  struct Letter {
    Address from, to;
    Message message;
  };

  void add_roles(std::vector<Audience*> audience);
  LocalHost::Options host_options();
  /// False when there are none left: then it has started.
  bool take_early(std::vector<Letter>& early);
  // What the actors here want of others.
  void send_out(Address from, Address to, Message message);
  void watch_out(Address watcher, Address watched);
  void note_end(Address actor, const std::string& reason);

  bool is_here(Address actor) const { return options_.placement.node_of(actor) == options_.self; }
  std::string name_of(NodeIndex node) const;
  /// For who watches actors that `concerns`, why they are down.
  template <class Concerns>
  std::vector<News> news_of(Concerns concerns, const std::string& reason) const;
  void tell(const std::vector<News>& news);
  /// Of a node that is away, a shard or a stage of its pipeline for which the worker waits.
  std::optional<Address> missed_at(NodeIndex node, WorkerId worker) const;
  void begin_absence(NodeIndex node);
  /// Both on the agenda's thread.
  void give_up_waiting(NodeIndex node, std::uint64_t absence);
  void go_on_waiting();
  void come_back(NodeIndex node);
  void repeat_ends();
  void begin_life(WorkerId worker);
  std::shared_ptr<Role> next_life(WorkerId worker);

  const std::shared_ptr<const Job> job_;
  NodeHostOptions options_;  // the placement changes, under mutex_
  std::atomic<std::uint64_t> refused_{0};

  /// Of all below, down to the agenda. The host is not called under it.
  mutable std::shared_mutex mutex_;
  bool started_ = false;
  std::vector<Letter> early_;  // delivered before the start
  std::vector<Node> nodes_;
  std::uint64_t absences_ = 0;
  std::map<WorkerId, std::uint32_t> lives_;        // the last known
  std::map<WorkerId, std::uint32_t> here_;         // the last that was begun here
  std::map<Address, std::set<Address>> watchers_;  // here, of actors elsewhere
  std::map<Address, std::string> ended_;           // elsewhere, in their present lives
  std::map<Address, std::pair<std::uint32_t, std::string>> ended_here_;
  std::set<WorkerId> waiting_;  // ended here, until all for whom they wait are heard

  Agenda agenda_;
  std::optional<LocalFaults> faults_;
  /// Last: its actors use all of the above, and it as well, until it has ended them. reset() would
  /// take it from them.
  std::unique_ptr<LocalHost> host_;
};

}  // namespace leeway
