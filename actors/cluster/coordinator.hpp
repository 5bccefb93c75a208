#pragma once
// Coordinator: the role of a program's process in a cluster. It decides which nodes take part in
// the job, on which node each worker lives, and when the job begins and ends on all of them.
//
//   idle -- prepare() --> calling --> asking --> shipping --> ready (or failed)
//   ready -- start() --> linking --> running (or failed)
//   running -- finish() --> ending --> ended
//
// A node without a shard, or one whose shards have standbys, can leave the job, or be replaced when
// it is gone or has been silent for the coordinator's patience. A shard that has lost a replica
// gets a new standby on another node. A node that offers to take missing workers waits until there
// are some. A node of the job's list that is lost, or has left, is called again and again. When a
// process there answers, it takes its own workers again, and others that have been missing for the
// coordinator's patience. Two nodes that hear the program but not each other lose the workers that
// need both; these workers are launched again when the two hear each other again, or have a new
// connection.
//
// It knows no network, thread or clock. Its process calls the inputs, one at a time, and does what
// it asks of its Site.
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/cluster/placement.hpp"
#include "actors/job.hpp"
#include "messages/events.hpp"
#include "messages/node.hpp"

namespace leeway {

struct CoordinatorOptions {
  Placement placement;
  std::vector<std::string> names;          // addresses of all nodes, this program's first
  std::string who;                         // name of the program, for people
  std::string arithmetic;                  // of this program's machine; see node::Answer
  bool measure_clocks = false;             // of the nodes
  Duration answer_limit = seconds(20);     // for an answer, or a sign that the node loads data
  Duration hurry = seconds(2);             // after a problem, for other nodes to report theirs
  Duration end_limit = seconds(10);        // for the end of a node's actors
  Duration silent_end_limit = seconds(2);  // the same, for a silent node
  Duration silence = seconds(2);           // after which a node counts as silent
  Duration patience = seconds(10);         // for a silent node, or connection between two nodes
  Duration call_again = milliseconds(25);  // after the loss of a node; doubles with each call,
  Duration call_again_most = seconds(10);  // up to this
  Duration relink_every = seconds(5);      // two nodes that have lost their connection
  Duration standby_again = seconds(1);     // after the second loss of a standby; doubles likewise
  std::uint32_t at_least = 0;              // nodes with which the job may start; 0: all
};

class Coordinator {
 public:
  /// The process of the coordinator. Its functions must not call the coordinator.
  class Site {
   public:
    virtual ~Site() = default;
    /// Of the steady clock.
    virtual std::int64_t now_ns() const = 0;
    virtual void say(const std::string& text) = 0;
    /// Begins to connect; the outcome is an input.
    virtual void call(NodeIndex node, const std::string& name) = 0;
    virtual void send(PeerId peer, std::uint64_t job, node::Body body) = 0;
    /// Ends a connection.
    virtual void leave(PeerId peer) = 0;
    /// The samples from `first` on, of training and test data together.
    virtual node::DataPiece piece(const node::DataMark& mark, std::int64_t first) = 0;
    /// Time of a node's last request for a file of this machine; 0: none.
    virtual std::int64_t last_file_request_ns() const = 0;
    /// A node can take part.
    virtual void accepted(NodeIndex node, PeerId peer, const std::string& name,
                          const node::Answer& answer) = 0;
    /// A node that was accepted takes part no more.
    virtual void has_left(NodeIndex node, const std::string& reason) = 0;

    // The program's own part of the job.
    virtual void link(NodeIndex node, PeerId peer, const std::string& name) = 0;
    /// A node is lost for good, although its connection may live.
    virtual void unlink(NodeIndex node, const std::string& reason) = 0;
    virtual void begin() = 0;
    virtual void launch(Address actor, std::uint32_t launch) = 0;
    virtual void end_launch(Address actor, std::uint32_t launch, const std::string& reason) = 0;
    /// Asks the scheduler to let a worker leave; its event is an input.
    virtual void ask_to_leave(WorkerId worker) = 0;
    /// Reports to the scheduler that a shard or standby cannot be reached.
    virtual void report_lost(Address actor, const std::string& reason) = 0;
  };

  Coordinator(CoordinatorOptions options, std::uint64_t number, Site& site);

  // ---- commands of the program ----

  /// Calls all nodes, asks them, and sends them missing data. `ask` lacks what differs between
  /// nodes.
  void prepare(std::shared_ptr<const Stages> stages, const std::vector<plan::Fault>& faults,
               node::Ask ask);
  /// All nodes connect to each other, and begin. `norms`: the shards exchange those of rounds.
  void start(bool norms);
  /// Ends the job on all nodes, and waits for them.
  void finish();
  /// Ends the job on all nodes, and waits for none.
  void abandon(const std::string& reason);

  // ---- inputs ----

  void called(NodeIndex node, const Expected<PeerId>& peer);
  void received(PeerId peer, std::uint64_t job, const node::Body& body);
  void silent(PeerId peer);
  void heard(PeerId peer);
  void gone(PeerId peer, const std::string& reason);
  /// An actor has ended.
  void ended(Address actor, std::uint32_t launch);
  /// An event of the scheduler that concerns() the coordinator: a worker has left, or the replicas
  /// of a shard have changed.
  void on_event(const Event& event);
  static bool concerns(const Event& event);
  /// A fault of the plan starts a worker of the program's node again.
  void returned(WorkerId worker) { worker_returned(kProgramNode, worker); }
  /// To be called every kTick.
  void tick();
  static constexpr Duration kTick = milliseconds(50);

  // ---- state ----

  enum class Phase : std::uint8_t {
    idle,
    calling,
    asking,
    shipping,
    ready,
    linking,
    running,
    failed,
    ending,
    ended
  };
  Phase phase() const { return phase_; }
  /// The problems of all nodes, in one error.
  Status problems() const;
  const Placement& placement() const { return placement_; }
  /// Whether the scheduler has reported that the shard's standby has the state.
  bool is_in_sync(ShardId shard) const { return replicas_.at(shard.value()).in_sync; }
  std::uint64_t number() const { return number_; }
  /// The node of a peer that has been accepted, or was.
  std::optional<NodeIndex> node_of(PeerId peer) const;
  std::vector<std::string> names() const;
  const std::string& name_of(NodeIndex node) const { return nodes_[node.value()].name; }
  /// The clock of a node, minus that of this one; 0 unless clocks were measured.
  std::int64_t clock_ahead(NodeIndex node) const { return nodes_[node.value()].clock_ahead; }

 private:
  enum class Step : std::uint8_t {
    none,
    calling,
    called,
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
    std::optional<PeerId> peer;  // of its latest connection
    Step step = Step::none;
    std::int64_t since = 0;  // of the step, or of its last progress
    std::string problem;     // why it cannot take part, or is gone
    std::string facts;       // "8 cores, 16 GB"
    std::string arithmetic;  // see node::Answer
    bool joins = false;      // after the start
    bool leaves = false;     // before the end
    bool wants_data = false;
    std::int64_t asked_at = 0;
    std::int64_t loading_shown_at = 0;  // when the user last saw that it loads; 0: not yet
    std::int64_t sent = 0, stored = 0;  // samples of both data sets
    std::int64_t piece_samples = 1;     // of the largest piece so far
    std::int64_t silent_since = 0;      // 0: it is not
    int pings = 0;
    std::int64_t answered_ns = 0;  // time of the last Ping that it has answered while it ran
    std::int64_t round_trip = 0, clock_ahead = 0;
    std::set<WorkerId> leaving, takes;
    bool may_go = false;       // it leaves, and has no actor
    int asked_again = 0;       // requests whose predecessors the node has yet to give up
    bool was_started = false;  // it may have given others its number
    std::int64_t lost_at = 0;  // when it took part for the last time
    std::int64_t call_at = 0;  // when it is called again; 0: it is not
    Duration call_after;       // the time between calls
    std::string last_refusal;  // why it could not join

    bool has_left() const { return step == Step::gone || step == Step::ended; }
    bool takes_part() const { return step >= Step::asked && !has_left(); }
    /// No other node knows its number, so that it can have it again.
    bool keeps_number() const { return joins && !was_started; }
  };
  struct Offer {
    PeerId peer;
    std::string name;
    std::int64_t until = 0;
    bool held = false;  // the node knows that it waits
  };
  /// Two nodes that do not hear each other.
  struct Outage {
    std::int64_t since = 0;
    bool gone = false;
    bool handled = false;                     // the workers that need both have ended
    bool is_said = false;                     // to the user
    std::set<ShardId> reported;               // whose standbys the scheduler knows of
    std::optional<std::int64_t> relinked_at;  // last order to make a new connection
  };
  /// The replicas of a shard.
  struct Replicas {
    std::uint32_t primary_launch = 1, standby_launch = 1;
    bool in_sync = true;           // the standby has the state
    bool primary_lost = false;     // the standby is ordered to take over
    NodeIndex last = kNowhere;     // node of the previous standby
    bool moves = false;            // a replica has been ended, so that it begins elsewhere
    NodeIndex awaited = kNowhere;  // node of the other replica; the move waits for its answer
    std::int64_t awaited_since = 0;
    std::int64_t since = 0;  // when the standby came in sync
    std::int64_t due = 0;    // when the next standby may begin
    Duration again;          // the time between the next two
  };
  using Pair = std::pair<NodeIndex, NodeIndex>;  // the node that has reported it, and the other

  static NodeIndex index_of(std::size_t node) {
    return NodeIndex(static_cast<std::uint32_t>(node));
  }
  void send(const Node& node, node::Body body) { site_.send(*node.peer, number_, std::move(body)); }
  void enter(Node& node, Step step);
  std::int64_t samples() const { return ask_.data.train_samples + ask_.data.test_samples; }

  /// The nodes that have not left, without the program's.
  std::vector<std::size_t> present() const;

  // Before the start.
  /// Whether a node is at a step that the phase waits for.
  bool is_awaited(const Node& node) const;
  /// Enters the next phase if no node is awaited, or after a problem and some time.
  void advance();
  void enter(Phase phase);
  void ask(std::size_t index);
  void after_answer(std::size_t index);
  /// Orders the node to connect to all nodes that have this order already. Nodes that still load
  /// data connect later, so that none waits for them.
  void start(Node& node);
  void ship(Node& node);
  void show_shipping();
  /// Gives nodes that have not answered in time a problem.
  void check_limits();
  /// Whether the job may start without the nodes that have a problem.
  bool can_spare_nodes() const;
  /// Takes those nodes for lost: places their shards on other nodes, and leaves their workers to
  /// nodes that join. Asks the other nodes again.
  void start_without_nodes();
  void has_problem(std::size_t index, std::string problem);

  // Messages.
  void handle(std::size_t index, const node::Body& body);
  void on_stranger(PeerId peer, std::uint64_t job, const node::Body& body);
  void on_loading(Node& node);
  void on_answer(std::size_t index, const node::Answer& answer);
  void on_pong(std::size_t index, const node::Pong& pong);
  void on_stored(std::size_t index, const node::Stored& stored);
  void on_leaving(std::size_t index);
  void on_offer(PeerId peer, const node::Offer& offer);
  void on_link_state(std::size_t index, const node::LinkState& state);
  void on_linked(std::size_t index);
  void node_gone(std::size_t index, const std::string& reason);
  void worker_returned(NodeIndex node, WorkerId worker);
  void left(WorkerId worker);

  // Nodes that join.
  void answer_offers();
  /// True if the offer is answered for good.
  bool answer(Offer& offer);
  void hold(Offer& offer, const std::string& text);
  void refuse(PeerId peer, const std::string& text) { site_.send(peer, 0, node::Refused{text}); }
  void take_in(const Offer& offer, std::set<WorkerId> workers);
  /// Takes nodes out whose workers others can have: silent ones without a needed replica.
  void drop_silent_nodes();
  /// True if the loss of the node would cost a shard, or only a standby.
  bool has_needed_replica(NodeIndex node) const;
  /// Workers without a node: their node has left, or they were placed `later`.
  std::set<WorkerId> missing() const;
  /// Stages on other nodes whose pipeline has a worker in `taken`, and which left with that worker:
  /// they have stopped, and take part again only when they are launched again.
  std::set<WorkerId> stopped_with(const std::set<WorkerId>& taken) const;
  void launch_again(WorkerId worker, NodeIndex node);
  void order_launch(Address actor, NodeIndex node, std::uint32_t launch);

  // Standbys.
  void standby_lost(const event::StandbyLost& lost);
  void took_over(const event::StandbyTookOver& promoted);
  void in_sync(const event::StandbyInSync& seeded);
  /// Replaces the standbys on the node of which the scheduler does not know yet.
  void lose_standbys(NodeIndex node);
  /// The shard has lost its standby, or that is the primary now.
  void replace_standby(ShardId shard);
  /// Launches the standbys that are due, where a node can have them.
  void launch_standbys();
  /// The node for a new standby; none if no running node can have it.
  std::optional<NodeIndex> node_for_standby_of(ShardId shard) const;
  /// Whether a shard waits for a node that can have its standby.
  bool lacks_standby() const;
  /// Whether a lost node is to be called.
  bool is_wanted(const Node& node) const;
  /// Whether the node joins, and loads the data for so long that others may take its place.
  bool is_slow(const Node& node) const;
  bool is_any_joining() const;
  /// Whether both replicas of the shard are on one node, and in sync.
  bool shares_node(ShardId shard) const;
  /// Whether a node is needed to separate the replicas of a shard.
  bool separates_replicas() const;
  void end_actor(Address actor, const std::string& reason);
  /// Whether the node runs, and is not silent.
  bool is_in_touch(NodeIndex node) const;
  /// Ends replicas on nodes that leave, one of a shard after the other, and standbys on the node of
  /// their primary that a node that has joined can have.
  void move_replicas();
  std::optional<Address> replica_to_move(ShardId shard) const;
  /// Whether the node has answered since the move was due. A replica ends only if the other one
  /// lives, and a loss is noticed late.
  bool has_confirmed(NodeIndex node, Replicas& replicas);
  /// Lets nodes go that have no actor any more.
  void let_go();
  /// Gives the node of a standby that would compute other bits than its primary a problem, and
  /// warns of replicas on one machine.
  void check_replicas();
  const std::string& arithmetic_of(NodeIndex node) const {
    return node == kProgramNode ? options_.arithmetic : nodes_[node.value()].arithmetic;
  }

  // Nodes that are lost.
  /// Notes that the node takes part no more.
  void lose(Node& node, Step step);
  /// Gives up a node whose process lives: ends the connection, so that no late message counts for
  /// the number under which it takes part next.
  void give_up(std::size_t index, node::Body last, const std::string& reason);
  void call_later(Node& node);
  void call_lost_nodes();
  void called_again(std::size_t index, const Expected<PeerId>& peer);
  /// The missing workers that a node at this address may take. A worker whose user computes stays
  /// with its process.
  std::set<WorkerId> missing_for(const std::string& name) const;
  /// The missing workers that a lost node takes when it runs again.
  std::set<WorkerId> missing_for(const Node& node) const;

  // Nodes that do not hear each other.
  void check_outages();
  void handle_outage(const Pair& nodes);
  /// Reports the standbys whose primary is on the other node.
  void report_standbys(const Pair& nodes, Outage& outage);
  std::string cut_off_reason(Address actor, NodeIndex here, NodeIndex there) const;
  void resume_cut_off();
  /// An actor on that node without which the worker cannot go on.
  std::optional<Address> needs(WorkerId worker, NodeIndex node) const;

  const CoordinatorOptions options_;
  const std::uint64_t number_;
  Site& site_;
  Phase phase_ = Phase::idle;
  std::int64_t phase_since_ = 0, shown_ = 0;
  std::optional<std::int64_t> hurry_;  // soon after the first problem, so that no other is blamed
  Placement placement_;
  std::vector<std::uint32_t> launches_;  // the last of each worker
  std::vector<NodeIndex> homes_;         // the last node of each worker; kNowhere: none yet
  std::vector<Replicas> replicas_;       // by shard; empty: none has a standby
  std::shared_ptr<const Stages> stages_;
  bool norms_ = false;
  node::Ask ask_;
  std::vector<Node> nodes_;  // by number; node 0 is this program
  std::vector<Offer> offers_;
  std::set<WorkerId> left_;     // workers that have left and are not launched again
  std::set<WorkerId> cut_off_;  // workers that were ended because of an outage
  std::map<Pair, Outage> outages_;
};

}  // namespace leeway
