#pragma once
// Driver: the program's side of a cluster: finds out whether the nodes can host a job, ships what
// they lack, lets all begin together, and ends the job everywhere.
//
//   prepare() -> start() -> poll() until the run has ended -> finish()
//
// One thread calls it. What goes wrong before the start is told for all nodes at once.
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cluster/job_node.hpp"
#include "cluster/mesh_events.hpp"
#include "cluster/mesh_inbox.hpp"

namespace leeway {

struct DriverOptions {
  std::vector<std::string> nodes;               // "HOST:PORT"
  std::string place;                            // see place_actors
  MeshOptions mesh;                             // of this program
  std::string who;                              // it is, for people
  bool trace = false;                           // events of all nodes are wanted
  std::function<void(const std::string&)> say;  // one line for the terminal
  std::function<bool()> interrupted;
  Duration call_limit = seconds(5);     // until a node is called
  Duration answer_limit = seconds(20);  // until it has answered, having looked at its data
  Duration end_limit = seconds(10);     // until it has ended its actors
  OpenMesh open = open_mesh;
};

class Driver {
 public:
  /// Listens, and places the plan's actors.
  static Expected<std::unique_ptr<Driver>> open(DriverOptions options, const Plan& plan);
  /// Tells all nodes that the job is over, unless finish() has.
  ~Driver();

  /// "127.0.0.1:4242": where this program listens, for those who join.
  std::string name() const;
  /// Asks all nodes, and sends the data to those that lack it. `initial_weights` as in Ask.
  Status prepare(const TrainTest& data, const std::vector<Blob>& initial_weights);
  const Placement& placement() const { return placement_; }
  /// All nodes connect to each other, and begin. `on_event` is called for the events of all of
  /// them, on the time axis of this one, from many threads at once.
  Status start(const std::shared_ptr<const Job>& job, const std::vector<Audience*>& audience,
               std::function<void(Address, Instant, const Event&)> on_event);
  /// Handles what has been said, waiting for it up to `limit`.
  void poll(Duration limit);
  NodeHost& host() { return node_->host(); }
  /// Ends the job on all nodes and waits for them; says who does not answer.
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
    std::string problem;  // why it cannot take part, or is gone
    std::string facts;    // "8 cores, 16 GB"
    bool joins = false;   // in the middle of the job
    bool leaves = false;  // likewise
    bool wants_data = false;
    std::int64_t sent = 0, stored = 0;  // samples of both data sets together
    std::int64_t silent_since = 0;      // 0: it is heard
    int pings = 0;
    std::int64_t round_trip = 0, clock_ahead = 0;
    std::set<WorkerId> leaving, takes;
  };
  struct Move {
    node::Moved moved;
    std::set<std::size_t> unaware;  // numbers of the nodes that have not answered yet
  };

  explicit Driver(DriverOptions options) : options_(std::move(options)) {}
  void say(const std::string& text) const {
    if (options_.say) options_.say(text);
  }
  void tell(const Node& node, node::Body body);

  // Before the start.
  void call_all();
  void ask(std::size_t index);
  /// Until no node is at one of the steps; those that are when the time is over have a problem.
  void await(const std::set<Step>& steps, Duration limit, const std::string& what);
  /// All problems in one text, the nodes being given back, when there is one.
  Status problems();
  void ship(Node& node);
  Status ship_all();

  void handle(MeshInbox::Item& item);
  void handle(std::size_t index, node::Body& body);
  void on_stranger(PeerId peer, std::uint64_t job, const node::Body& body);
  void on_answer(std::size_t index, const node::Answer& answer);
  void next_step(std::size_t index);
  void on_pong(std::size_t index, const node::Pong& pong);
  void on_events(const Node& node, const node::Events& events);
  void on_gone(std::size_t index, const std::string& reason);

  // Nodes that leave and join.
  void on_leaving(std::size_t index);
  void on_left(WorkerId worker);
  void on_offer(PeerId peer, const node::Offer& offer);
  std::set<WorkerId> missing() const;
  std::set<WorkerId> stopped_with(const std::set<WorkerId>& taken) const;
  /// The worker's next life is to be on that node.
  void begin_move(WorkerId worker, NodeIndex node);
  void on_joined(std::size_t index);
  void on_moved(std::size_t index, const node::Moved& moved);
  void finish_moves();

  DriverOptions options_;
  std::string host_;  // where others can call this program
  std::uint64_t number_ = 0;
  MeshInbox inbox_;
  Placement placement_;
  Plan plan_;
  TrainTest data_;
  node::Ask ask_;
  std::vector<Node> nodes_;  // by number; the first is this program
  std::vector<Move> moves_;
  std::set<WorkerId> left_;  // and have had no next life since
  std::function<void(Address, Instant, const Event&)> on_event_;
  std::set<std::string> names_;  // of events
  bool begun_ = false;
  bool finished_ = false;
  std::shared_mutex node_mutex_;  // of the pointer, for the mesh's threads
  std::shared_ptr<JobNode> node_;
  std::unique_ptr<Mesh> mesh_;  // last: its threads use all of the above
};

}  // namespace leeway
