#include "cluster/agent.hpp"

#include <unistd.h>

#include <thread>

#include "cluster/judge.hpp"
#include "cluster/node_name.hpp"
#include "cluster/this_host.hpp"
#include "core/text.hpp"

namespace leeway {
namespace {

constexpr Duration kCallLimit = seconds(5);
constexpr Duration kOfferLimit = seconds(10);
constexpr Duration kTick = milliseconds(50);

std::string clock_time(std::time_t time) {
  std::tm local{};
  localtime_r(&time, &local);
  char text[16];
  std::strftime(text, sizeof text, "%H:%M:%S", &local);
  return text;
}

}  // namespace

/// What there is while the agent belongs to a program.
struct Agent::Session {
  PeerId program;
  std::uint64_t number = 0;  // of the job
  node::Ask ask;
  Plan plan;
  std::time_t since = std::time(nullptr);
  std::optional<TrainTest> data;
  std::optional<ShippedData> arriving;
  std::map<NodeIndex, std::pair<PeerId, std::string>> called;  // before there was a JobNode
  std::vector<PeerId> peers;                                   // other agents, to be left
  bool linked = false;
  bool begun = false;
  std::int64_t silent_since = 0;  // the program; 0: it is heard
  std::int64_t leave_by = 0;      // 0: nobody leaves

  NodeIndex self() const { return NodeIndex(ask.self); }
  Placement placement() const { return placement_of(ask); }
  std::string text() const { return concat("the job of ", ask.who); }
};

Expected<std::unique_ptr<Agent>> Agent::open(AgentOptions options) {
  std::unique_ptr<Agent> agent(new Agent(std::move(options)));
  auto mesh = agent->options_.open(agent->options_.mesh,
                                   events_into(agent->inbox_, agent->node_mutex_, agent->node_));
  if (!mesh) return mesh.error();
  agent->mesh_ = std::move(*mesh);
  agent->say(concat("listening on ", agent->name()));
  if (!agent->options_.join.empty())
    if (const auto offered = agent->offer(); !offered) return offered.error();
  return agent;
}

Agent::Agent(AgentOptions options) : options_(std::move(options)) {}

Agent::~Agent() {
  if (session_) end_session("this node ends");
  mesh_.reset();
}

std::string Agent::name() const {
  return concat(mesh_->address(), ':', mesh_->port());
}

Status Agent::offer() {
  const auto program = parse_node(options_.join);
  if (!program) return program.error();
  const auto peer =
      mesh_->connect(program->host, program->port, kCallLimit,
                     "give the address that the program prints as it starts, while it runs");
  if (!peer) return peer.error();
  offered_to_ = *peer;
  offered_at_ = steady_ns();
  reply(*peer, node::Offer{name()});
  return {};
}

void Agent::reply(PeerId peer, node::Body body, std::uint64_t job) {
  mesh_->send(peer, kHost, kHost, encode(NodeEnvelope{job, std::move(body)}));
}

Status Agent::run(const std::function<bool()>& interrupted) {
  bool told = false;
  while (!finished_) {
    if (auto item = inbox_.take(kTick)) handle(*item);
    if (!told && interrupted()) {
      told = true;
      leave();
    }
    tick();
  }
  return outcome_;
}

// ---- what is said ----

void Agent::handle(MeshInbox::Item& item) {
  using Kind = MeshInbox::Item::Kind;
  const bool program = session_ && session_->program == item.peer;
  switch (item.kind) {
    case Kind::said:
      return handle(item.peer, item.said->job, item.said->body);
    case Kind::silent:
      if (program) session_->silent_since = steady_ns();
      return;
    case Kind::heard:
      if (program) session_->silent_since = 0;
      return;
    case Kind::gone:
      waiting_.erase(item.peer);
      if (program) end_session(concat("the program is gone: ", item.text));
      if (offered_to_ == item.peer && !session_) {
        if (outcome_) outcome_ = Error{concat(options_.join, " is gone: ", item.text)};
        finished_ = true;
      }
      return;
    case Kind::note:
      return say(item.text);
    case Kind::left:
      return;  // of the scheduler's node alone
  }
}

void Agent::handle(PeerId peer, std::uint64_t job, node::Body& body) {
  if (auto* ask = std::get_if<node::Ask>(&body)) return on_ask(peer, job, *ask);
  if (const auto* ping = std::get_if<node::Ping>(&body))
    return reply(peer, node::Pong{ping->ns, steady_ns()}, job);
  if (std::holds_alternative<node::StatusRequest>(body)) return reply(peer, status());
  if (std::holds_alternative<node::Offer>(body)) return on_offer(peer);
  if (const auto* refused = std::get_if<node::Refused>(&body); refused && offered_to_ == peer) {
    outcome_ = Error{refused->text};
    finished_ = true;
    return;
  }
  if (!session_ || session_->number != job) return;  // of a job that is over
  if (const auto* here = std::get_if<node::Here>(&body)) return on_here(peer, job, *here);
  if (node_ && node_->node_of(peer)) {
    if (const auto* ended = std::get_if<node::Ended>(&body)) return node_->ended(*ended);
    if (const auto* moved = std::get_if<node::Moved>(&body)) {
      node_->moved(*moved);
      if (peer != session_->program) return;
      if (moved->node == session_->self().value())
        say(concat(address_of(moved->worker), " of ", session_->text(), " goes on here"));
      return reply(peer, *moved, job);
    }
  }
  if (peer != session_->program) return;
  if (auto* chunk = std::get_if<node::Chunk>(&body)) return on_chunk(*chunk);
  if (std::holds_alternative<node::Start>(body)) return on_start();
  if (std::holds_alternative<node::Begin>(body) && session_->linked && !session_->begun) {
    session_->begun = true;
    node_->begin();
    return say(concat("began ", session_->text(), ": ", actors_text(session_->ask)));
  }
  if (std::holds_alternative<node::Left>(body) && session_->leave_by > 0)
    return end_session("the workers here have left it");
  if (const auto* end = std::get_if<node::End>(&body)) return end_session(end->text);
}

void Agent::on_offer(PeerId peer) {
  std::string text = concat(name(),
                            " is a node, not a program; give the address that the program "
                            "prints as it starts");
  if (session_) text += concat(", for the job that is here ", session_->ask.nodes[0]);
  reply(peer, node::Refused{std::move(text)});
}

bool Agent::program_in_doubt() const {
  return session_ && !mesh_->is_connected(session_->program);
}

void Agent::on_ask(PeerId peer, std::uint64_t job, node::Ask& ask) {
  if (!leaving_ && program_in_doubt()) {
    waiting_.insert_or_assign(peer, std::make_pair(job, std::move(ask)));
    return;
  }
  node::Answer answer = about_this_machine();
  if (leaving_)
    answer.busy = "it is about to end";
  else if (session_ && !(session_->program == peer && session_->number == job))
    answer.busy =
        concat("it has been hosting ", session_->text(), " since ", clock_time(session_->since));
  if (!answer.busy.empty() || session_) {
    if (!answer.busy.empty()) say(concat("refused the job of ", ask.who, ": ", answer.busy));
    return reply(peer, std::move(answer), job);
  }
  auto plan = judge(ask, answer.problems);
  if (plan) {
    auto session = std::make_unique<Session>();
    session->program = peer;
    session->number = job;
    session->plan = std::move(*plan);
    session->data = shelf_.find(session->plan, ask.data);
    answer.wants_data = !session->data;
    if (answer.wants_data) session->arriving.emplace(ask.data);
    session->ask = std::move(ask);
    session_ = std::move(session);
  }
  for (const auto& problem : answer.problems)
    say(concat("cannot take the job of ", ask.who, ": ", problem));
  reply(peer, std::move(answer), job);
}

void Agent::on_chunk(node::Chunk& chunk) {
  auto& arriving = session_->arriving;
  if (!arriving) return;
  if (const auto added = arriving->add(chunk); !added) return give_up(added.error().text);
  const std::int64_t samples = arriving->samples();
  if (arriving->complete()) {
    auto data = arriving->take();
    arriving.reset();
    if (!data) return give_up(data.error().text);
    session_->data = *data;
    shelf_.keep(session_->ask.data, std::move(*data));
    say(concat("received the data of ", session_->text(), ": ", samples, " samples"));
  }
  reply(session_->program, node::Stored{samples}, session_->number);
}

// ---- the connections of a job ----

void Agent::on_start() {
  if (node_) return;
  if (const auto started = start_session(); !started) give_up(started.error().text);
}

Status Agent::start_session() {
  Session& session = *session_;
  if (!session.data) return Error{"it has no data yet"};
  const Placement placement = session.placement();
  const NodeIndex self = session.self();
  const auto job =
      make_job(session.plan, *session.data,
               {.here = [&](Address actor) { return placement.node_of(actor) == self; },
                .initial_weights = session.ask.initial_weights});
  if (!job) return job.error();
  JobNode::Options options{.number = session.number,
                           .placement = placement,
                           .self = self,
                           .names = session.ask.nodes,
                           .silence = options_.mesh.silence,
                           .trace = session.ask.trace,
                           .on_event = {}};
  auto node = std::make_shared<JobNode>(*mesh_, *job, std::vector<Audience*>{}, std::move(options));
  {
    std::lock_guard lock(node_mutex_);
    node_ = std::move(node);
  }
  link(kProgramNode, session.program, session.ask.nodes[0]);
  for (const auto& [index, caller] : std::exchange(session.called, {})) {
    link(index, caller.first, caller.second);
    reply(caller.first, node::Here{self.value(), name()}, session.number);
  }
  // Of each two agents the one that was named later calls.
  for (std::uint32_t other = 1; other < self.value(); ++other) {
    const std::string& to = session.ask.nodes[other];
    if (to.empty()) continue;
    const auto address = parse_node(to);
    if (!address) return address.error();
    const auto peer = mesh_->connect(address->host, address->port, kCallLimit,
                                     "see that its node runs, and can be reached from here");
    if (!peer) return Error{concat("cannot reach node ", peer.error().text)};
    reply(*peer, node::Here{self.value(), name()}, session.number);
  }
  linked_if_complete();
  return {};
}

void Agent::link(NodeIndex node, PeerId peer, const std::string& name) {
  node_->link(node, peer, name);
  if (node != kProgramNode) session_->peers.push_back(peer);
}

void Agent::on_here(PeerId peer, std::uint64_t job, const node::Here& here) {
  const NodeIndex node(here.node);
  if (node == kProgramNode || node == session_->self()) return;
  if (!node_) {
    session_->called[node] = {peer, here.name};
    return;
  }
  if (node_->is_linked(node)) return;
  link(node, peer, here.name);
  // Who calls is answered; the answer is not.
  if (node > session_->self()) reply(peer, node::Here{session_->ask.self, name()}, job);
  linked_if_complete();
}

void Agent::linked_if_complete() {
  if (session_->linked) return;
  const auto& nodes = session_->ask.nodes;
  for (std::uint32_t other = 0; other < nodes.size(); ++other)
    if (other != session_->ask.self && !nodes[other].empty() && !node_->is_linked(NodeIndex(other)))
      return;
  session_->linked = true;
  reply(session_->program, node::Linked{}, session_->number);
}

// ---- the end ----

void Agent::give_up(const std::string& why) {
  reply(session_->program, node::Refused{why}, session_->number);
  end_session(why);
}

void Agent::end_session(const std::string& why) {
  send_events();
  std::shared_ptr<JobNode> node;
  {
    std::lock_guard lock(node_mutex_);
    node.swap(node_);
  }
  node.reset();  // waits for its actors
  const auto session = std::move(session_);
  reply(session->program, node::Done{}, session->number);
  // What agents still have under way for each other ends with the connection, before the next job.
  for (const PeerId peer : session->peers) mesh_->leave(peer);
  say(concat(session->begun ? "ended " : "gave back ", session->text(), ": ", why,
             leaving_ ? "" : "; free"));
  if (leaving_ || offered_to_) finished_ = true;
}

void Agent::leave() {
  leaving_ = true;
  if (!session_) {
    finished_ = true;
    return;
  }
  const auto placement = session_->placement();
  for (const NodeIndex node : placement.shards)
    if (session_->begun && node == session_->self())
      return say(concat("a shard of ", session_->text(),
                        " is here: to end now would lose the job. This node ends with it; Ctrl-C "
                        "again ends it at once"));
  if (!session_->begun) return give_up("this node is about to end");
  say(concat("leaving ", session_->text()));
  session_->leave_by = steady_ns() + options_.leave_limit.ns;
  reply(session_->program, node::Leaving{}, session_->number);
}

void Agent::tick() {
  const std::int64_t now = steady_ns();
  if (!session_ && offered_to_ && !finished_ && now - offered_at_ > kOfferLimit.ns) {
    outcome_ =
        Error{concat(options_.join, " has not taken this node within ", kOfferLimit.seconds(),
                     " s; give the address that a program with --nodes prints as it starts, "
                     "not that of a node")};
    finished_ = true;
  }
  if (!waiting_.empty() && !program_in_doubt())
    for (auto& [peer, asked] : std::exchange(waiting_, {})) on_ask(peer, asked.first, asked.second);
  if (!session_) return;
  if (session_->leave_by > 0 && now > session_->leave_by)
    return end_session(concat("its workers did not stop within ", options_.leave_limit.seconds(),
                              " s and are ended"));
  if (session_->silent_since > 0 && now - session_->silent_since > options_.program_silence.ns) {
    const PeerId program = session_->program;
    end_session(
        concat("no sign of life of the program for ", options_.program_silence.seconds(), " s"));
    mesh_->leave(program);
    return;
  }
  send_events();
}

void Agent::send_events() {
  if (!node_ || !session_->ask.trace) return;
  auto events = node_->take_events();
  for (std::size_t begin = 0; begin < events.size(); begin += limits::kMaxEventBatch) {
    const auto first = events.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto count = std::min(limits::kMaxEventBatch, events.size() - begin);
    reply(session_->program,
          node::Events{{std::make_move_iterator(first),
                        std::make_move_iterator(first + static_cast<std::ptrdiff_t>(count))}},
          session_->number);
  }
}

node::Status Agent::status() const {
  node::Status status;
  status.version = leeway_version();
  status.name = name();
  if (node_) node_->fill(status);
  return status;
}

}  // namespace leeway
