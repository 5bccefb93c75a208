#pragma once
// Driver: the process of a program that runs a job on a cluster. It carries out what its
// Coordinator decides, keeps the program's part of the job, and collects the traces of all nodes.
//
//   prepare() -> start() -> poll() until the run has ended -> finish()
//
// Called by one thread. An error before the start lists the problems of all nodes.
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "actors/cluster/coordinator.hpp"
#include "cluster/file_exchange.hpp"
#include "cluster/process.hpp"

namespace leeway {

struct DriverOptions {
  std::vector<std::string> nodes;               // "HOST:PORT"
  std::string place;                            // see place_actors
  MeshOptions mesh;                             // of this program
  std::string who;                              // name of the program, for people
  bool trace = false;                           // collect the events of all nodes
  bool trace_messages = false;                  // collect the messages of all nodes
  std::function<void(const std::string&)> say;  // prints one line
  std::function<bool()> interrupted;
  Duration call_limit = seconds(5);  // to connect to a node
  // As in CoordinatorOptions.
  std::uint32_t at_least = 0;
  Duration answer_limit = seconds(20);
  Duration end_limit = seconds(10);
  Duration patience = seconds(10);
  OpenMesh open = open_mesh;
};

class Driver final : private Coordinator::Site {
 public:
  /// Listens, and places the plan's actors.
  static Expected<std::unique_ptr<Driver>> open(DriverOptions options, const Plan& plan);
  /// Ends the job on all nodes, unless finish() has.
  ~Driver() override;

  /// "127.0.0.1:4242": where this program listens, for nodes that join.
  std::string name() const;
  /// Sends a request to all nodes, and the data to nodes without it.
  Status prepare(const Job& job);
  /// With the number of workers of its host groups: see with_host_groups().
  const Plan& plan() const { return plan_; }
  const Placement& placement() const { return coordinator_->placement(); }
  /// All nodes connect to each other, and begin. `observers` receive the events and messages of all
  /// of them, on the time axis of this one.
  Status start(const std::shared_ptr<const Job>& job, const std::vector<Audience*>& audience,
               ActorObservers observers);
  /// Handles the messages that have arrived; waits for the first up to `limit`.
  void poll(Duration limit);
  LocalNode& host() { return process_.job()->host(); }
  /// Ends the job on all nodes, waits for them, and names the nodes that do not answer.
  void finish();

  /// Answers nodes that serve a page of the run. Without it, the program has none.
  using Page = std::function<node::PageState(const node::PageRequest&)>;
  void set_page(Page page) { page_ = std::move(page); }

 private:
  /// What this process keeps for a node.
  struct NodeFiles {
    std::unique_ptr<FileExchange> exchange;
    node::Answer::Checkpoints checkpoints{};
    std::uint64_t next_checkpoint = 0;
  };

  Driver(DriverOptions options, Plan plan);
  /// Polls until the coordinator has left these phases. Error: the problems of nodes, or the user
  /// has interrupted.
  Status pass(Coordinator::Phase first, Coordinator::Phase last);
  void received(PeerId peer, std::uint64_t job, node::Body& body);
  /// False if the message is for the coordinator.
  bool handle(NodeIndex node, PeerId peer, node::Body& body);
  void on_effects(NodeIndex node, const node::Effects& effects);
  void on_events(NodeIndex node, const node::Events& events);
  void on_messages(NodeIndex node, node::Messages& messages);
  /// Lets the node send more.
  void taken(NodeIndex node, PeerId peer, std::size_t count);
  void on_page_request(PeerId peer, const node::PageRequest& request);
  void send_status(PeerId peer);
  /// The job with a store that writes copies on the nodes that keep them.
  std::shared_ptr<const Job> with_copies(const std::shared_ptr<const Job>& job) const;

  // Coordinator::Site
  std::int64_t now_ns() const override;
  void say(const std::string& text) override {
    if (options_.say) options_.say(text);
  }
  void call(NodeIndex node, const std::string& name) override;
  void send(PeerId peer, std::uint64_t job, node::Body body) override {
    process_.send(peer, job, std::move(body));
  }
  void leave(PeerId peer) override { process_.mesh().leave(peer); }
  node::DataPiece piece(const node::DataMark& mark, std::int64_t first) override;
  std::int64_t last_file_request_ns() const override;
  void accepted(NodeIndex node, PeerId peer, const std::string& name,
                const node::Answer& answer) override;
  void has_left(NodeIndex node, const std::string& reason) override;
  void link(NodeIndex node, PeerId peer, const std::string& name) override {
    process_.job()->routes().link(node, peer, name);
  }
  void unlink(NodeIndex node, const std::string& reason) override {
    process_.job()->routes().unlink(node, reason);
  }
  void begin() override { process_.job()->begin(); }
  void launch(Address actor, std::uint32_t launch) override { host().node().launch(actor, launch); }
  void end_launch(Address actor, std::uint32_t launch, const std::string& reason) override {
    host().node().end_launch(actor, launch, {EndReason::Kind::unreachable, reason});
  }
  void ask_to_leave(WorkerId worker) override;
  void report_lost(Address actor, const std::string& reason) override {
    host().report_down(kScheduler, actor, {EndReason::Kind::cut_off, reason});
  }

  const DriverOptions options_;
  const Plan plan_;
  std::string host_;  // at which others reach this program
  TrainTest data_;
  node::Ask ask_;
  std::map<NodeIndex, NodeFiles> files_;
  std::set<NodeIndex> counted_;               // nodes whose effects are
  std::map<NodeIndex, std::uint64_t> taken_;  // events and messages of nodes
  ActorObservers observers_;
  Page page_;                       // may be empty
  std::int64_t page_asked_at_ = 0;  // when a node has last asked for it; 0: never
  std::unique_ptr<Coordinator> coordinator_;
  Process process_;
};

}  // namespace leeway
