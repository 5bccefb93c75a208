#pragma once
// JobNode: one node's part of a job: its actors, its connections to the other nodes, and the status
// of both.
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "actors/cluster/job_routes.hpp"
#include "cluster/job_progress.hpp"
#include "cluster/local_node.hpp"
#include "cluster/status_book.hpp"
#include "cluster/trace_buffer.hpp"
#include "core/limits.hpp"
#include "messages/node.hpp"
#include "transport/mesh.hpp"

namespace leeway {

class JobNode {
 public:
  struct Options {
    std::uint64_t number = 0;  // of the job
    Placement placement;
    NodeIndex self;
    std::vector<std::string> names;  // of all nodes
    Duration silence = seconds(2);   // of the mesh
    bool trace = false;              // keep events for events()
    bool trace_messages = false;     // keep messages for messages()
    std::size_t trace_kept = limits::kMaxTraceKept;
    /// Called for every event of this node, from many threads at once; may be empty.
    OnActorEvent on_event;
    /// Called for every message that reaches an actor of this node, likewise.
    OnMessage on_message;
    /// A fault of the plan starts a worker of this node again. (The coordinator starts standbys by
    /// itself.)
    std::function<void(WorkerId)> on_return;
    /// As in JobRoutes::Options.
    std::function<void(Address, std::uint32_t launch)> on_ended = {};
  };
  /// The mesh outlives it.
  JobNode(Mesh& mesh, std::shared_ptr<const Job> job, std::vector<Audience*> audience,
          Options options);

  void begin();

  /// The mesh's threads report here what its connections bring.
  JobRoutes& routes() { return routes_; }
  LocalNode& host() { return *host_; }
  NodeHost& node() { return host_->node(); }
  const std::shared_ptr<const Job>& job() const { return job_; }
  /// Time of begin() on the steady clock.
  std::int64_t began_ns() const { return began_ns_; }
  /// With `trace`: events with times of the steady clock.
  TraceBuffer<node::Events::Emitted>& events() { return events_; }
  /// With `trace_messages`, likewise.
  TraceBuffer<node::Messages::Received>& messages() { return messages_; }
  void fill(node::Status& status) const;

 private:
  void on_event(Address actor, Instant at, const Event& event, std::uint64_t record);
  void keep(const ReceivedMessage& one);

  Mesh& mesh_;
  std::shared_ptr<const Job> job_;
  Options options_;
  StatusBook book_;
  JobProgress progress_;
  std::atomic<std::int64_t> began_ns_ = 0;

  JobRoutes routes_;
  TraceBuffer<node::Events::Emitted> events_;
  TraceBuffer<node::Messages::Received> messages_;
  std::unique_ptr<LocalNode> host_;  // last: its actors use all of the above
};

}  // namespace leeway
