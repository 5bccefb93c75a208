#pragma once
// Agent: a process that hosts actors of one job after another, for programs that call it.
//
//   free --Ask--> reserved --Start--> linking --Begin--> running --End--> free
//
// It belongs to one program at a time. Its answer to another program names the owner and the time
// since when it hosts that job. The job ends here when its program is gone or silent for too long.
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>

#include "cluster/data_cache.hpp"
#include "cluster/job_node.hpp"
#include "cluster/mesh_events.hpp"
#include "cluster/mesh_inbox.hpp"
#include "cluster/shipped.hpp"
#include "core/files.hpp"
#include "transport/mesh.hpp"

namespace leeway {

/// An agent ends the job of a program that is silent for longer.
inline constexpr Duration kProgramSilence = seconds(15);

struct AgentOptions {
  MeshOptions mesh;
  std::string join;                             // program to join; empty: none
  std::function<void(const std::string&)> say;  // logs one line
  Duration program_silence = kProgramSilence;
  Duration leave_limit = seconds(10);  // for workers to stop
  OpenMesh open = open_mesh;
  std::shared_ptr<Files> disk = shared_disk();  // of this machine
};

class Agent {
 public:
  /// Listens. With `join`, also calls that program and offers to host workers.
  static Expected<std::unique_ptr<Agent>> open(AgentOptions options);
  ~Agent();

  /// "127.0.0.1:4242".
  std::string name() const;
  /// Serves until `interrupted`, then lets its workers stop. An agent that joined a job ends with
  /// it. The error gives the reason for which the program refused it.
  Status run(const std::function<bool()>& interrupted);

 private:
  struct HostedJob;
  using NodeJob = Expected<std::shared_ptr<const Job>>;
  explicit Agent(AgentOptions options);
  Status offer();
  void say(const std::string& text) const { options_.say(text); }
  void reply(PeerId peer, node::Body body, std::uint64_t job = 0);

  void handle(MeshInbox::Item& item);
  void handle(PeerId peer, std::uint64_t job, node::Body& body);
  void on_ask(PeerId peer, std::uint64_t job, node::Ask& ask);
  void on_offer(PeerId peer);
  /// Whether the connection to the program is lost, and has been neither restored nor given up.
  bool program_in_doubt() const;
  void on_chunk(node::Chunk& chunk);
  void on_start();
  /// Makes the job of this node. Takes as long as a checkpoint takes to load.
  NodeJob make_node_job(const HostedJob& hosted) const;
  /// Makes the connections of the job if it is made.
  void link_if_made();
  Status link_job(std::shared_ptr<const Job> job);
  void link(NodeIndex node, PeerId peer, const std::string& name);
  void on_here(PeerId peer, std::uint64_t job, const node::Here& here);
  void linked_if_complete();
  void end_job(const std::string& why);
  /// Ends the job here, and sends the program the reason.
  void give_up(const std::string& why);
  node::Status status() const;

  void tick();
  void leave();
  template <class Batch, class Item>
  void send_batches(std::vector<Item> all);
  void send_traces();

  AgentOptions options_;
  MeshInbox inbox_;
  std::shared_mutex node_mutex_;       // guards the pointer, which the mesh's threads read
  std::shared_ptr<JobNode> node_;      // null: no job, or one that has not started
  std::unique_ptr<HostedJob> hosted_;  // null: free
  DataCache data_cache_;
  /// The last request of each other program, while the present one is in doubt.
  std::map<PeerId, std::pair<std::uint64_t, node::Ask>> waiting_;
  std::optional<PeerId> offered_to_;
  std::int64_t offered_at_ = 0;
  bool held_ = false;  // the program keeps the offer until its job begins
  bool leaving_ = false;
  bool finished_ = false;
  Status outcome_;
  std::unique_ptr<Mesh> mesh_;  // last: its threads use all of the above
};

}  // namespace leeway
