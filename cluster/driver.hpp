#pragma once
// Driver: the program's side of a cluster. It checks whether the nodes can host a job, sends them
// missing data, starts all of them together, and ends the job everywhere.
//
//   prepare() -> start() -> poll() until the run has ended -> finish()
//
// Called by one thread. An error before the start lists the problems of all nodes.
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/file_exchange.hpp"
#include "cluster/job_node.hpp"
#include "cluster/mesh_events.hpp"
#include "cluster/mesh_inbox.hpp"

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
  Duration call_limit = seconds(5);     // to connect to a node
  Duration answer_limit = seconds(20);  // for its answer; it may load data first
  Duration end_limit = seconds(10);     // for the end of its actors
  OpenMesh open = open_mesh;
};

class Driver {
 public:
  /// Listens, and places the plan's actors.
  static Expected<std::unique_ptr<Driver>> open(DriverOptions options, const Plan& plan);
  /// Ends the job on all nodes, unless finish() has.
  ~Driver();

  /// "127.0.0.1:4242": where this program listens, for nodes that join.
  std::string name() const;
  /// Sends a request to all nodes, and the data to nodes without it.
  Status prepare(const Job& job);
  const Placement& placement() const { return placement_; }
  /// All nodes connect to each other, and begin. `observers` receive the events and messages of all
  /// of them, on the time axis of this one.
  Status start(const std::shared_ptr<const Job>& job, const std::vector<Audience*>& audience,
               ActorObservers observers);
  /// Handles the messages that have arrived; waits for the first up to `limit`.
  void poll(Duration limit);
  NodeHost& host() { return node_->host(); }
  /// Ends the job on all nodes, waits for them, and names the nodes that do not answer.
  void finish();

 private:
  enum class Step : std::uint8_t {
    none,
    asked,
    asking_clock,
    shipping,
    ready,
    linking,
    running,
    ended,
    gone
  };
  struct Node {
    std::string name;
    PeerId peer;
    Step step = Step::none;
    std::string problem;   // why it cannot take part, or is gone
    std::string facts;     // "8 cores, 16 GB"
    bool joins = false;    // after the start
    bool leaves = false;   // before the end
    bool counted = false;  // its effects are
    bool wants_data = false;
    std::int64_t sent = 0, stored = 0;  // samples of both data sets
    std::int64_t silent_since = 0;      // 0: it is not
    int pings = 0;
    std::int64_t round_trip = 0, clock_ahead = 0;
    std::set<WorkerId> leaving, takes;
    node::Answer::Checkpoints checkpoints{};
    std::uint64_t next_checkpoint = 0;
    std::unique_ptr<FileExchange> files;

    bool has_left() const { return step == Step::gone || step == Step::ended; }
    bool takes_part() const { return step != Step::none && !has_left(); }
  };
  struct Move {
    node::Moved moved;
    std::set<std::size_t> unaware;  // nodes that have not acknowledged the move
  };

  explicit Driver(DriverOptions options) : options_(std::move(options)) {}
  void say(const std::string& text) const {
    if (options_.say) options_.say(text);
  }
  void send(const Node& node, node::Body body);

  // Before the start.
  void call_all();
  void ask(std::size_t index);
  /// Waits until no node is at one of `steps`. After `limit`, such a node has a problem.
  void await(const std::set<Step>& steps, Duration limit, const std::string& what);
  /// All problems in one error.
  Status problems();
  void ship(Node& node);
  /// Opens the files of checkpoints for a node.
  void exchange_files(std::size_t index, const node::Answer& answer);
  /// The job with a store that writes copies on the nodes that keep them.
  std::shared_ptr<const Job> with_copies(const std::shared_ptr<const Job>& job) const;
  /// Time of the last request for a file on the steady clock.
  std::int64_t last_file_request_ns() const;
  Status ship_all();

  void handle(MeshInbox::Item& item);
  void handle(std::size_t index, node::Body& body);
  void on_unknown_peer(PeerId peer, std::uint64_t job, const node::Body& body);
  void on_answer(std::size_t index, const node::Answer& answer);
  void next_step(std::size_t index);
  void on_pong(std::size_t index, const node::Pong& pong);
  void on_events(const Node& node, const node::Events& events);
  void on_messages(const Node& node, node::Messages& messages);
  void on_gone(std::size_t index, const std::string& reason);

  // Nodes that leave and join.
  void on_leaving(std::size_t index);
  void on_left(WorkerId worker);
  void on_offer(PeerId peer, const node::Offer& offer);
  std::set<WorkerId> missing() const;
  std::set<WorkerId> stopped_with(const std::set<WorkerId>& taken) const;
  /// Places the worker's next life on that node.
  void begin_move(WorkerId worker, NodeIndex node);
  void on_joined(std::size_t index);
  void on_moved(std::size_t index, const node::Moved& moved);
  void finish_moves();

  DriverOptions options_;
  std::string host_;  // at which others reach this program
  std::uint64_t number_ = 0;
  MeshInbox inbox_;
  Placement placement_;
  Plan plan_;
  TrainTest data_;
  node::Ask ask_;
  std::vector<Node> nodes_;                                   // by number; node 0 is this program
  std::vector<std::pair<PeerId, node::Offer>> early_offers_;  // wait for the start
  std::vector<Move> moves_;
  std::set<WorkerId> left_;  // workers without a life since they left
  ActorObservers observers_;
  bool begun_ = false;
  bool finished_ = false;
  std::shared_mutex node_mutex_;  // of the pointer, for the mesh's threads
  std::shared_ptr<JobNode> node_;
  std::unique_ptr<Mesh> mesh_;  // last: its threads use all of the above
};

}  // namespace leeway
