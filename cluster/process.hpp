#pragma once
// Process: what a program and a node agent have in common: a mesh, their part of the present job,
// and a queue of calls for the one thread that runs the role.
//
// Messages for actors go to the job's node at once, on the mesh's threads. All others, and the
// mesh's events, become calls in the queue.
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "cluster/job_node.hpp"
#include "messages/node.hpp"
#include "transport/mesh.hpp"

namespace leeway {

/// open_mesh, or a test's replacement.
using OpenMesh =
    std::function<Expected<std::unique_ptr<Mesh>>(const MeshOptions& options, MeshEvents events)>;

class Process {
 public:
  /// Called by poll(). They outlive the process.
  struct Inputs {
    std::function<void(PeerId, std::uint64_t job, node::Body& body)> received;
    std::function<void(PeerId)> silent, heard;
    std::function<void(PeerId, const std::string& reason)> gone;
    std::function<void(const std::string&)> note;
  };

  explicit Process(Inputs inputs) : inputs_(std::move(inputs)) {}
  /// Waits for calls of other processes. The job must have ended.
  ~Process() { close(); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Listens.
  Status open(const MeshOptions& options, const OpenMesh& open_mesh);
  /// No input follows.
  void close();
  Mesh& mesh() const { return *mesh_; }

  /// Adds a call to the queue. From any thread.
  void post(std::function<void()> call);
  /// Runs the queued calls; waits for the first up to `limit`.
  void poll(Duration limit);

  /// Sends to the host of another process.
  void send(PeerId peer, std::uint64_t job, node::Body body) const {
    mesh_->send(peer, kHost, kHost, encode(NodeEnvelope{job, std::move(body)}));
  }
  /// Connects to a process on another thread; `then` gets the outcome in poll(). The error says
  /// `advice` if no process was reached.
  void call(const std::string& name, Duration limit, const std::string& advice,
            std::function<void(const Expected<PeerId>&)> then);

  /// This process' part of a job; null: none. Called by the thread of poll().
  const std::shared_ptr<JobNode>& job() const { return job_; }
  void set_job(std::shared_ptr<JobNode> job);

 private:
  MeshEvents mesh_events();
  template <class Call>
  void with_routes(Call call) {
    std::shared_lock lock(job_mutex_);
    if (job_) call(job_->routes());
  }

  const Inputs inputs_;
  std::vector<std::future<void>> calls_;  // of other processes
  std::mutex queue_mutex_;
  std::condition_variable queued_;
  std::deque<std::function<void()>> queue_;
  std::shared_mutex job_mutex_;  // of the pointer, for the mesh's threads
  std::shared_ptr<JobNode> job_;
  std::unique_ptr<Mesh> mesh_;  // last: its threads use all of the above
};

}  // namespace leeway
