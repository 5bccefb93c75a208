#pragma once
// LocalNode: one node's part of a job, with actors on threads of this process, and the plan's
// faults of these actors.
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "actors/cluster/node_host.hpp"
#include "cluster/local_faults.hpp"
#include "cluster/local_host.hpp"
#include "cluster/pending_orders.hpp"

namespace leeway {

/// Receivers of what happens at the actors. Many threads call them at once; each may be empty.
struct ActorObservers {
  OnActorEvent on_event;
  OnMessage on_message;
  /// Another node has dropped this many events or messages, because they were recorded too slowly.
  std::function<void(std::uint64_t)> on_lost_events = {}, on_lost_messages = {};
};

class LocalNode final : private ActorHostEvents {
 public:
  struct Options {
    NodeHostOptions node;       // without `later`
    ActorObservers observers;   // of this node
    unsigned pool_threads = 0;  // 0: one a core
    /// A fault of the plan starts a worker or a standby of this node again, or for the first time.
    /// Empty: it is launched at once.
    std::function<void(Address)> on_return;
  };

  /// Adds the roles that are placed here; starts none.
  LocalNode(std::shared_ptr<const Job> job, std::vector<Audience*> audience, Options options);
  /// Ends all actors here and waits for them, without on_end.
  ~LocalNode() override;
  LocalNode(const LocalNode&) = delete;
  LocalNode& operator=(const LocalNode&) = delete;

  void start();
  NodeHost& node() { return *node_; }
  const NodeHost& node() const { return *node_; }

  /// Sends as the host itself, to an actor on any node.
  void send(Address to, Message message) { host_->send(to, std::move(message)); }
  void report_down(Address watcher, Address ended, const EndReason& reason) {
    host_->report_down(watcher, ended, reason);
  }
  bool lives(Address actor) const { return host_->lives(actor); }
  /// Why an actor here has ended; none while it runs.
  std::optional<EndReason> end_reason(Address actor) const { return host_->end_reason(actor); }
  Instant now() const { return host_->now(); }

 private:
  LocalHost::Options host_options(const Job& job, Options& options);
  void send_out(Address from, Address to, Message message) override {
    node_->send_out(from, to, std::move(message));
  }
  void watch_out(Address watcher, Address watched) override { node_->watch_out(watcher, watched); }
  void on_end(Address actor, const EndReason& reason) override { node_->on_end(actor, reason); }
  void on_take_over(ShardId shard) override { node_->on_take_over(shard); }

  PendingOrders orders_;
  std::optional<LocalFaults> faults_;
  std::unique_ptr<NodeHost> node_;
  /// Last: its actors use all of the above, and host_ itself, until they have ended. So it is not
  /// reset().
  std::unique_ptr<LocalHost> host_;
};

}  // namespace leeway
