#pragma once
// Agent: a process that hosts actors of one job after another, for programs that call it.
//
//   free --Ask--> reserved --Start--> linking --Begin--> running --End--> free
//
// It belongs to one program at a time; another one is told whose job it is and since when. A
// program that is gone, or silent for long, ends the job here.
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>

#include "cluster/data_shelf.hpp"
#include "cluster/job_node.hpp"
#include "cluster/mesh.hpp"
#include "cluster/mesh_events.hpp"
#include "cluster/mesh_inbox.hpp"
#include "models/datasets/shipped.hpp"

namespace leeway {

/// After which an agent gives up a program of which nothing is heard.
inline constexpr Duration kProgramSilence = seconds(15);

struct AgentOptions {
  MeshOptions mesh;
  std::string join;                             // a program to offer itself to; empty: none
  std::function<void(const std::string&)> say;  // one line of what it does
  Duration program_silence = kProgramSilence;   // after which its job is given up
  Duration leave_limit = seconds(10);           // for workers to stop
  OpenMesh open = open_mesh;
};

class Agent {
 public:
  /// Listens. With `join`, also calls that program and offers itself.
  static Expected<std::unique_ptr<Agent>> open(AgentOptions options);
  ~Agent();

  /// "127.0.0.1:4242".
  std::string name() const;
  /// Serves until `interrupted`, then lets its workers stop. An agent that joined a job ends with
  /// it. The error says why it was not taken.
  Status run(const std::function<bool()>& interrupted);

 private:
  struct Session;
  explicit Agent(AgentOptions options);
  Status offer();
  void say(const std::string& text) const { options_.say(text); }
  void reply(PeerId peer, node::Body body, std::uint64_t job = 0);

  void handle(MeshInbox::Item& item);
  void handle(PeerId peer, std::uint64_t job, node::Body& body);
  void on_ask(PeerId peer, std::uint64_t job, node::Ask& ask);
  void on_offer(PeerId peer);
  /// The connection to the program is lost: it is gone, as will be known soon, or comes back.
  bool program_in_doubt() const;
  void on_chunk(node::Chunk& chunk);
  void on_start();
  Status start_session();
  void link(NodeIndex node, PeerId peer, const std::string& name);
  void on_here(PeerId peer, std::uint64_t job, const node::Here& here);
  void linked_if_complete();
  void end_session(const std::string& why);
  /// Says to the program that this node cannot go on, and why.
  void give_up(const std::string& why);
  node::Status status() const;

  void tick();
  void leave();
  void send_events();

  AgentOptions options_;
  MeshInbox inbox_;
  std::shared_mutex node_mutex_;      // of the pointer, for the mesh's threads
  std::shared_ptr<JobNode> node_;     // null: no job, or one that has not started
  std::unique_ptr<Session> session_;  // null: free
  DataShelf shelf_;
  /// Of other programs, the last of each, while the present one is in doubt.
  std::map<PeerId, std::pair<std::uint64_t, node::Ask>> waiting_;
  std::optional<PeerId> offered_to_;
  std::int64_t offered_at_ = 0;
  bool leaving_ = false;
  bool finished_ = false;
  Status outcome_;
  std::unique_ptr<Mesh> mesh_;  // last: its threads use all of the above
};

}  // namespace leeway
