#include "cluster/agent.hpp"

#include <unistd.h>

#include <future>
#include <thread>

#include "cluster/check_request.hpp"
#include "cluster/effects.hpp"
#include "cluster/node_checkpoints.hpp"
#include "cluster/node_name.hpp"
#include "core/text.hpp"
#include "transport/this_host.hpp"

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

/// The job of the program to which the agent belongs.
struct Agent::HostedJob {
  PeerId program;
  std::uint64_t number = 0;  // of the job
  node::Ask ask;
  Plan plan;
  std::time_t since = std::time(nullptr);
  std::optional<TrainTest> data;
  std::optional<ShippedData> arriving;
  std::map<NodeIndex, std::pair<PeerId, std::string>> called;  // before the JobNode exists
  std::vector<PeerId> peers;                                   // connections to leave at the end
  std::unique_ptr<FileExchange> files;                         // of the program
  std::optional<NodeCheckpoints> checkpoints;
  bool linked = false;
  bool begun = false;
  std::int64_t silent_since = 0;  // since when the program is; 0: it is not
  std::int64_t leave_by = 0;      // 0: the node does not leave
  /// The node's job while it is made. Last: its destructor waits for the thread, which uses all of
  /// the above.
  std::future<NodeJob> making;

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
  if (hosted_) end_job("this node ends");
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
                     "give the address that the program prints at its start, while it runs");
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

// ---- messages ----

void Agent::handle(MeshInbox::Item& item) {
  using Kind = MeshInbox::Item::Kind;
  const bool program = hosted_ && hosted_->program == item.peer;
  switch (item.kind) {
    case Kind::message:
      return handle(item.peer, item.message->job, item.message->body);
    case Kind::silent:
      if (program) hosted_->silent_since = steady_ns();
      return;
    case Kind::heard:
      if (program) hosted_->silent_since = 0;
      return;
    case Kind::gone:
      waiting_.erase(item.peer);
      if (program) end_job(concat("the program is gone: ", item.text));
      if (offered_to_ == item.peer && !hosted_) {
        if (outcome_) outcome_ = Error{concat(options_.join, " is gone: ", item.text)};
        finished_ = true;
      }
      return;
    case Kind::note:
      return say(item.text);
    case Kind::left:
      return;  // only on the scheduler's node
  }
}

void Agent::handle(PeerId peer, std::uint64_t job, node::Body& body) {
  if (auto* ask = std::get_if<node::Ask>(&body)) return on_ask(peer, job, *ask);
  if (const auto* ping = std::get_if<node::Ping>(&body))
    return reply(peer, node::Pong{ping->ns, steady_ns()}, job);
  if (std::holds_alternative<node::StatusRequest>(body)) return reply(peer, status());
  if (std::holds_alternative<node::Offer>(body)) return on_offer(peer);
  if (offered_to_ == peer && !hosted_) {
    if (const auto* refused = std::get_if<node::Refused>(&body)) {
      outcome_ = Error{refused->text};
      finished_ = true;
      return;
    }
    if (std::holds_alternative<node::Held>(body)) {
      held_ = true;
      return say(concat("waits for the start of the job at ", options_.join));
    }
  }
  if (!hosted_ || hosted_->number != job) return;  // the job is over
  if (const auto* here = std::get_if<node::Here>(&body)) return on_here(peer, job, *here);
  if (node_ && node_->node_of(peer)) {
    if (const auto* ended = std::get_if<node::Ended>(&body)) return node_->ended(*ended);
    if (const auto* moved = std::get_if<node::Moved>(&body)) {
      node_->moved(*moved);
      if (peer != hosted_->program) return;
      if (moved->node == hosted_->self().value())
        say(concat(address_of(moved->worker), " of ", hosted_->text(), " continues here"));
      return reply(peer, *moved, job);
    }
  }
  if (peer != hosted_->program || hosted_->files->handle(body)) return;
  if (auto* chunk = std::get_if<node::Chunk>(&body)) return on_chunk(*chunk);
  if (std::holds_alternative<node::Start>(body)) return on_start();
  if (std::holds_alternative<node::Begin>(body) && hosted_->linked && !hosted_->begun) {
    hosted_->begun = true;
    node_->begin();
    return say(concat("began ", hosted_->text(), ": ", actors_text(hosted_->ask)));
  }
  if (std::holds_alternative<node::Left>(body) && hosted_->leave_by > 0)
    return end_job("the workers here have left it");
  if (const auto* end = std::get_if<node::End>(&body)) return end_job(end->text);
}

void Agent::on_offer(PeerId peer) {
  std::string text = concat(name(),
                            " is a node, not a program; give the address that the program "
                            "prints at its start");
  if (hosted_) text += concat("; the program of its job is at ", hosted_->ask.nodes[0]);
  reply(peer, node::Refused{std::move(text)});
}

bool Agent::program_in_doubt() const {
  return hosted_ && !mesh_->is_connected(hosted_->program);
}

void Agent::on_ask(PeerId peer, std::uint64_t job, node::Ask& ask) {
  if (!leaving_ && program_in_doubt()) {
    waiting_.insert_or_assign(peer, std::make_pair(job, std::move(ask)));
    return;
  }
  node::Answer answer = about_this_machine();
  if (leaving_)
    answer.busy = "it is shutting down";
  else if (hosted_ && !(hosted_->program == peer && hosted_->number == job))
    answer.busy =
        concat("it has been hosting ", hosted_->text(), " since ", clock_time(hosted_->since));
  if (!answer.busy.empty() || hosted_) {
    if (!answer.busy.empty()) say(concat("refused the job of ", ask.who, ": ", answer.busy));
    return reply(peer, std::move(answer), job);
  }
  auto plan = check_request(ask, *options_.disk, answer);
  if (plan) {
    auto hosted = std::make_unique<HostedJob>();
    hosted->program = peer;
    hosted->number = job;
    hosted->plan = std::move(*plan);
    hosted->data = data_cache_.find(hosted->plan, ask.data);
    answer.wants_data = !hosted->data;
    if (answer.wants_data) hosted->arriving.emplace(ask.data);
    hosted->ask = std::move(ask);
    hosted->checkpoints.emplace(hosted->ask, answer.checkpoints, options_.disk);
    hosted->files = std::make_unique<FileExchange>(
        "the program", *options_.disk, hosted->checkpoints->program_rights(),
        [this, peer, job](node::Body body) {
          mesh_->send(peer, kHostFiles, kHostFiles, encode(NodeEnvelope{job, std::move(body)}));
        });
    hosted_ = std::move(hosted);
  }
  for (const auto& problem : answer.problems)
    say(concat("cannot take the job of ", ask.who, ": ", problem));
  reply(peer, std::move(answer), job);
}

void Agent::on_chunk(node::Chunk& chunk) {
  auto& arriving = hosted_->arriving;
  if (!arriving) return;
  if (const auto added = arriving->add(chunk); !added) return give_up(added.error().text);
  const std::int64_t samples = arriving->samples();
  if (arriving->complete()) {
    auto data = arriving->take();
    arriving.reset();
    if (!data) return give_up(data.error().text);
    hosted_->data = *data;
    data_cache_.keep(hosted_->ask.data, std::move(*data));
    say(concat("received the data of ", hosted_->text(), ": ", samples, " samples"));
  }
  reply(hosted_->program, node::Stored{samples}, hosted_->number);
}

// ---- the connections of a job ----

void Agent::on_start() {
  if (node_ || hosted_->making.valid()) return;
  if (!hosted_->data) return give_up("it has no data yet");
  hosted_->making = std::async(std::launch::async, [this, hosted = hosted_.get()]() -> NodeJob {
    try {
      return make_node_job(*hosted);
    } catch (const std::exception& error) {  // no memory
      return Error{error.what()};
    }
  });
}

Agent::NodeJob Agent::make_node_job(const HostedJob& hosted) const {
  const Placement placement = hosted.placement();
  const NodeIndex self = hosted.self();
  JobOptions job_options{.here = [&](Address actor) { return placement.node_of(actor) == self; },
                         .initial_weights = hosted.ask.initial_weights};
  const auto model = make_model(hosted.plan, *hosted.data->train);
  if (!model) return model.error();
  job_options.model = *model;
  if (const auto opened = hosted.checkpoints->open(hosted.files->remote(), **model, job_options);
      !opened)
    return opened.error();
  return make_job(hosted.plan, *hosted.data, std::move(job_options));
}

void Agent::link_if_made() {
  auto& making = hosted_->making;
  if (!making.valid() || making.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
    return;
  auto job = making.get();
  if (!job) return give_up(job.error().text);
  if (const auto linked = link_job(std::move(*job)); !linked) give_up(linked.error().text);
}

Status Agent::link_job(std::shared_ptr<const Job> job) {
  HostedJob& hosted = *hosted_;
  JobNode::Options options{.number = hosted.number,
                           .placement = hosted.placement(),
                           .self = hosted.self(),
                           .names = hosted.ask.nodes,
                           .silence = options_.mesh.silence,
                           .trace = hosted.ask.trace,
                           .trace_messages = hosted.ask.trace_messages,
                           .on_event = {},
                           .on_message = {}};
  auto node = std::make_shared<JobNode>(*mesh_, std::move(job), std::vector<Audience*>{},
                                        std::move(options));
  {
    std::lock_guard lock(node_mutex_);
    node_ = std::move(node);
  }
  link(kProgramNode, hosted.program, hosted.ask.nodes[0]);
  for (const auto& [index, caller] : std::exchange(hosted.called, {})) {
    link(index, caller.first, caller.second);
    reply(caller.first, node::Here{hosted.self().value(), name()}, hosted.number);
  }
  // Of two agents, the one with the larger number calls.
  for (std::uint32_t other = 1; other < hosted.self().value(); ++other) {
    const std::string& to = hosted.ask.nodes[other];
    if (to.empty()) continue;
    const auto address = parse_node(to);
    if (!address) return address.error();
    const auto peer = mesh_->connect(address->host, address->port, kCallLimit,
                                     "check that its node runs and can be reached from here");
    if (!peer) return Error{concat("cannot reach node ", peer.error().text)};
    reply(*peer, node::Here{hosted.self().value(), name()}, hosted.number);
  }
  linked_if_complete();
  return {};
}

void Agent::link(NodeIndex node, PeerId peer, const std::string& name) {
  node_->link(node, peer, name);
  if (node != kProgramNode) hosted_->peers.push_back(peer);
}

void Agent::on_here(PeerId peer, std::uint64_t job, const node::Here& here) {
  const NodeIndex node(here.node);
  if (node == kProgramNode || node == hosted_->self()) return;
  if (!node_) {
    hosted_->called[node] = {peer, here.name};
    return;
  }
  if (node_->is_linked(node)) return;
  link(node, peer, here.name);
  // Only a call is answered, not an answer.
  if (node > hosted_->self()) reply(peer, node::Here{hosted_->ask.self, name()}, job);
  linked_if_complete();
}

void Agent::linked_if_complete() {
  if (hosted_->linked) return;
  const auto& nodes = hosted_->ask.nodes;
  for (std::uint32_t other = 0; other < nodes.size(); ++other)
    if (other != hosted_->ask.self && !nodes[other].empty() && !node_->is_linked(NodeIndex(other)))
      return;
  hosted_->linked = true;
  reply(hosted_->program, node::Linked{}, hosted_->number);
}

// ---- the end ----

void Agent::give_up(const std::string& why) {
  reply(hosted_->program, node::Refused{why}, hosted_->number);
  end_job(why);
}

void Agent::end_job(const std::string& why) {
  send_traces();
  hosted_->files->close(why);
  std::shared_ptr<JobNode> node;
  {
    std::lock_guard lock(node_mutex_);
    node.swap(node_);
  }
  const auto job = node ? node->job() : nullptr;
  node.reset();  // waits for its actors
  const auto hosted = std::move(hosted_);
  if (job) reply(hosted->program, effects_of(*job), hosted->number);
  reply(hosted->program, node::Done{}, hosted->number);
  // Messages of this job must not reach the peers' next job.
  for (const PeerId peer : hosted->peers) mesh_->leave(peer);
  say(concat(hosted->begun ? "ended " : "gave back ", hosted->text(), ": ", why,
             leaving_ ? "" : "; free"));
  if (leaving_ || offered_to_) finished_ = true;
}

void Agent::leave() {
  leaving_ = true;
  if (!hosted_) {
    finished_ = true;
    return;
  }
  const auto placement = hosted_->placement();
  for (const NodeIndex node : placement.shards)
    if (hosted_->begun && node == hosted_->self())
      return say(concat("this node has a shard of ", hosted_->text(),
                        " and ends with it; ending now would lose the job. Press Ctrl-C again to "
                        "end at once"));
  if (!hosted_->begun) return give_up("this node is shutting down");
  say(concat("leaving ", hosted_->text()));
  hosted_->leave_by = steady_ns() + options_.leave_limit.ns;
  reply(hosted_->program, node::Leaving{}, hosted_->number);
}

void Agent::tick() {
  const std::int64_t now = steady_ns();
  if (!hosted_ && offered_to_ && !held_ && !finished_ && now - offered_at_ > kOfferLimit.ns) {
    outcome_ = Error{concat(options_.join, " has not answered within ", kOfferLimit.seconds(),
                            " s; give the address that a program with --nodes prints at its start, "
                            "not that of a node")};
    finished_ = true;
  }
  if (!waiting_.empty() && !program_in_doubt())
    for (auto& [peer, asked] : std::exchange(waiting_, {})) on_ask(peer, asked.first, asked.second);
  if (!hosted_) return;
  if (hosted_->leave_by > 0 && now > hosted_->leave_by)
    return end_job(concat("its workers did not stop within ", options_.leave_limit.seconds(),
                          " s and were ended"));
  if (hosted_->silent_since > 0 && now - hosted_->silent_since > options_.program_silence.ns) {
    const PeerId program = hosted_->program;
    end_job(
        concat("no sign of life from the program for ", options_.program_silence.seconds(), " s"));
    mesh_->leave(program);
    return;
  }
  send_traces();
  link_if_made();
}

/// Sends `all` in batches of the allowed size.
template <class Batch, class Item>
void Agent::send_batches(std::vector<Item> all) {
  for (std::size_t begin = 0; begin < all.size(); begin += limits::kMaxEventBatch) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto count = std::min(limits::kMaxEventBatch, all.size() - begin);
    reply(hosted_->program,
          Batch{{std::make_move_iterator(first),
                 std::make_move_iterator(first + static_cast<std::ptrdiff_t>(count))}},
          hosted_->number);
  }
}

void Agent::send_traces() {
  if (!node_) return;
  if (hosted_->ask.trace) send_batches<node::Events>(node_->take_events());
  if (hosted_->ask.trace_messages) send_batches<node::Messages>(node_->take_messages());
}

node::Status Agent::status() const {
  node::Status status;
  status.version = leeway_version();
  status.name = name();
  if (node_) node_->fill(status);
  return status;
}

}  // namespace leeway
