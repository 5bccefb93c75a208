#pragma once
// Agent: the role of a node's process, which hosts actors of one job after another.
//
//   free -- Ask --> loading --> reserved -- Start --> making --> linking --> linked
//   linked -- Begin --> running
//   any but free -- End, or its program is gone or silent for too long --> free
//
// It belongs to one program at a time. Its answer to another program names the owner and the time
// since when it hosts that job. An agent that joins offers itself to a program, and ends with the
// job. If it cannot reach another node of the job, it offers itself again until its wait is over:
// that node may be stopped, and the program has yet to give it up.
//
// It knows no network, thread or clock. Its process calls the inputs, one at a time, and does what
// it asks of its Site.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/cluster/node_host.hpp"
#include "actors/cluster/placement.hpp"
#include "core/text.hpp"
#include "messages/node.hpp"

namespace leeway {

Placement placement_of(const node::Ask& ask);

/// An agent ends the job of a program that is silent for longer.
inline constexpr Duration kProgramSilence = seconds(15);

struct AgentOptions {
  std::string join;                            // the program to join; empty: none
  Duration join_wait = seconds(30);            // for a worker that is missing there
  Duration program_silence = kProgramSilence;  // until the job of a silent program ends
  Duration leave_limit = seconds(10);          // for workers to stop
  Duration offer_limit = seconds(10);          // for an answer of the program to join
  Duration join_again = seconds(1);            // after a node of the job could not be reached
  Duration report_loading = seconds(1);        // between two signs that the data is being loaded
};

class Agent {
 public:
  /// The process of the agent. Its functions must not call the agent.
  class Site {
   public:
    virtual ~Site() = default;
    /// Of the steady clock.
    virtual std::int64_t now_ns() const = 0;
    /// "14:03:59"
    virtual std::string time_of_day() const = 0;
    /// The address on which this process listens.
    virtual std::string name() const = 0;
    virtual void say(const std::string& text) = 0;
    virtual void warn(const std::string& text) = 0;
    /// Begins to connect to a node of the job; the outcome is an input.
    virtual void call(NodeIndex node, const std::string& name) = 0;
    /// Begins to connect to the program to join; the outcome is an input.
    virtual void call_program() = 0;
    virtual void send(PeerId peer, std::uint64_t job, node::Body body) = 0;
    /// Ends a connection.
    virtual void leave(PeerId peer) = 0;
    /// False while a connection is lost, whether or not it will be made again.
    virtual bool is_connected(PeerId peer) const = 0;

    /// Checks whether this machine can host its part of a job, and sets the answer, except whether
    /// it wants data. Keeps what the job needs if it can.
    virtual bool reserve(PeerId program, std::uint64_t job, const node::Ask& ask,
                         node::Answer& answer) = 0;
    /// Begins to load the data of the job from this machine; the outcome is an input.
    virtual void load_data() = 0;
    /// Adds data of the job. Returns the number of samples so far; `complete` if these are all.
    virtual Expected<std::int64_t> store(const node::DataPiece& piece, bool& complete) = 0;
    /// Begins to make the actors; the outcome is an input.
    virtual void make_actors() = 0;
    virtual void link(NodeIndex node, PeerId peer, const std::string& name) = 0;
    /// The actors begin.
    virtual void begin() = 0;
    virtual void launch(Address actor, std::uint32_t launch) = 0;
    virtual void end_launch(Address actor, std::uint32_t launch, const std::string& reason) = 0;
    /// An actor is launched on another node.
    virtual void moved(Address actor, NodeIndex node, std::uint32_t launch) = 0;
    virtual std::vector<NodeHost::HostedActor> hosted() const = 0;
    /// True if a shard would lose a replica that it may need.
    virtual bool has_replica() const = 0;
    /// Ends the actors and waits for them, frees what the job has kept, and sends the program what
    /// the node has counted.
    virtual void end_job(const std::string& reason) = 0;
  };

  Agent(AgentOptions options, Site& site) : options_(std::move(options)), site_(site) {}

  // ---- inputs ----

  /// The program to join is connected, or cannot be reached.
  void called_program(const Expected<PeerId>& program);
  void called(NodeIndex node, const Expected<PeerId>& peer);
  void received(PeerId peer, std::uint64_t job, node::Body& body);
  void silent(PeerId peer);
  void heard(PeerId peer);
  void gone(PeerId peer, const std::string& reason);
  /// The data is loaded, or this machine does not have it.
  void loaded(bool has_data);
  /// The actors are made.
  void made(const Status& outcome);
  /// A fault of the plan starts a worker here again.
  void returned(WorkerId worker);
  /// The process is asked to end: lets its workers stop before.
  void leave();
  /// Ends the job at once.
  void close();
  /// To be called every kTick.
  void tick();
  static constexpr Duration kTick = milliseconds(50);

  // ---- state ----

  /// An agent that is to end, or has joined a job that has ended.
  bool finished() const { return finished_; }
  /// Error: why the program refused the agent, or how it was lost.
  const Status& outcome() const { return outcome_; }
  /// The program that the agent joined was lost before the end of the job.
  bool has_lost_program() const { return has_lost_program_; }
  /// Whether `peer` is the program of the present job.
  bool is_program(PeerId peer) const { return hosted_ && hosted_->program == peer; }
  bool is_busy() const { return hosted_.has_value(); }
  bool is_leaving() const { return leaving_; }
  /// "hosts the job of NAME since 14:03:59"; empty: free.
  std::string job_text() const;

 private:
  enum class Step : std::uint8_t { loading, reserved, making, linking, linked, running };
  /// The job of the program to which the agent belongs.
  struct HostedJob {
    PeerId program;
    std::uint64_t number = 0;
    std::string who;
    NodeIndex self;
    std::vector<std::string> names;  // of the nodes; empty: not known, or gone
    Placement placement;             // of the request: its actors are those of the job
    std::string actors;
    node::Answer answer;  // sent when the data is loaded
    bool has_data = false;
    std::string since;
    Step step = Step::loading;
    std::int64_t reported_at = 0;  // when it was last reported that the data is being loaded
    std::map<NodeIndex, std::string> to_call;  // other nodes that were started before, by name
    std::map<NodeIndex, std::pair<PeerId, node::Here>> called;  // before the actors are made
    std::map<NodeIndex, PeerId> calls;  // nodes that were called, and have not answered yet
    std::map<NodeIndex, PeerId> links;
    std::int64_t silent_since = 0;  // since when the program is; 0: it is not
    std::int64_t leave_by = 0;      // 0: the node does not leave

    std::string text() const { return concat("the job of ", who); }
  };
  struct WaitingAsk {
    std::uint64_t job = 0;
    node::Ask ask;
  };

  void reply(PeerId peer, node::Body body, std::uint64_t job = 0) {
    site_.send(peer, job, std::move(body));
  }
  void to_program(node::Body body) {
    site_.send(hosted_->program, hosted_->number, std::move(body));
  }
  void on_ask(PeerId peer, std::uint64_t job, node::Ask& ask);
  void on_offer(PeerId peer);
  /// Logs a refusal, unless the last one was the same: a program may call again and again.
  void warn_of_refusal(const std::string& text);
  /// Messages of the program about the present job.
  void on_order(const node::Body& body);
  void on_piece(const node::DataPiece& piece);
  void on_here(PeerId peer, const node::Here& here);
  node::Here here() const;
  void linked_if_complete();
  /// The linked node of a peer, other than the program.
  std::optional<NodeIndex> node_of(PeerId peer) const;
  void report_link(PeerId peer, node::LinkState::State state);
  /// A peer is gone that was to become a link.
  void gone_unlinked(PeerId peer, const std::string& reason);
  /// Gives the job up, and joins it again later if there is time.
  void cannot_reach(const std::string& what);
  /// Whether it calls the program that it joins, or will call it again.
  bool is_joining() const {
    return !options_.join.empty() && !hosted_ && !offered_to_ && !finished_;
  }
  /// Whether the connection to the program is lost, and has been neither restored nor given up.
  bool program_in_doubt() const { return hosted_ && !site_.is_connected(hosted_->program); }
  void end_job(const std::string& why);
  /// Ends the job of a program that has ended or is silent; a failure if the agent joined it.
  void lose_program(const std::string& why);
  /// Ends the job here, and sends the program the reason.
  void give_up(const std::string& why);

  const AgentOptions options_;
  Site& site_;
  std::optional<HostedJob> hosted_;  // none: free
  /// The last request of each program, while the present one is in doubt or this agent joins one.
  std::map<PeerId, WaitingAsk> waiting_;
  std::optional<PeerId> offered_to_;
  std::int64_t offered_at_ = 0;
  std::int64_t join_until_ = 0;  // from the first offer on: when its wait for a worker is over
  std::int64_t join_again_ = 0;  // when the program is called again; 0: it is not
  bool held_ = false;            // the program keeps the offer
  bool leaving_ = false;
  std::string last_refusal_;  // as logged
  bool finished_ = false;
  bool has_lost_program_ = false;
  Status outcome_;
};

}  // namespace leeway
