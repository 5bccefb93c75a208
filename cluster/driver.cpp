#include "cluster/driver.hpp"

#include <algorithm>
#include <future>
#include <utility>

#include "checkpoint/store.hpp"
#include "cluster/effects.hpp"
#include "cluster/hints.hpp"
#include "cluster/node_name.hpp"
#include "cluster/shipped.hpp"
#include "core/check.hpp"
#include "core/text.hpp"
#include "transport/probe.hpp"
#include "transport/this_host.hpp"

namespace leeway {
namespace {

/// After the first problem, for the other nodes to report theirs.
constexpr Duration kHurry = seconds(2);
/// For a silent node to end its actors.
constexpr Duration kSilentEnd = seconds(2);
constexpr Duration kPollTime = milliseconds(20);
constexpr int kPings = 5;
/// Chunks of data in flight to one node.
constexpr std::int64_t kChunksAhead = 8;
/// Between two progress lines.
constexpr Duration kShowEvery = seconds(2);

std::string size_text(double bytes) {
  const bool large = bytes >= 1e9;
  return concat(static_cast<std::int64_t>(bytes / (large ? 1e9 : 1e6) + 0.5),
                large ? " GB" : " MB");
}

/// A program that listens on all addresses names the one from which it reaches the nodes: other
/// machines may not know the host's name.
std::string reachable_at(const std::string& address, const std::vector<std::string>& nodes) {
  if (!transport::is_any(address)) return address;
  std::string host;
  for (const auto& text : nodes) {
    const auto node = parse_node(text);
    const std::string own = node ? transport::local_host_towards(node->host, node->port) : "";
    if (!own.empty()) host = own;
    if (!host.empty() && !transport::is_loopback(host)) break;
  }
  if (host.empty()) {
    char name[256] = "localhost";
    gethostname(name, sizeof name - 1);
    return name;
  }
  return host.find(':') == std::string::npos ? host : concat('[', host, ']');
}

}  // namespace

Expected<std::unique_ptr<Driver>> Driver::open(DriverOptions options, const Plan& plan) {
  std::unique_ptr<Driver> driver(new Driver(std::move(options)));
  auto placement = place_actors(static_cast<std::uint32_t>(driver->options_.nodes.size()), plan,
                                driver->options_.place);
  if (!placement) return placement.error();
  driver->placement_ = std::move(*placement);
  driver->plan_ = plan;
  driver->number_ = random_word();
  auto mesh = driver->options_.open(
      driver->options_.mesh, events_into(driver->inbox_, driver->node_mutex_, driver->node_));
  if (!mesh) return mesh.error();
  driver->mesh_ = std::move(*mesh);
  driver->host_ = reachable_at(driver->mesh_->address(), driver->options_.nodes);
  driver->nodes_.push_back({.name = driver->name()});
  for (const auto& name : driver->options_.nodes) driver->nodes_.push_back({.name = name});
  return driver;
}

Driver::~Driver() {
  if (!finished_)
    for (const Node& node : nodes_)
      if (node.step != Step::none && node.step != Step::gone)
        send(node, node::End{"the program ends"});
  for (const Node& node : nodes_)
    if (node.files) node.files->close("the program ends");
  std::shared_ptr<JobNode> node;
  {
    std::lock_guard lock(node_mutex_);
    node.swap(node_);
  }
  node.reset();
  for (Node& ended : nodes_) ended.files.reset();
  mesh_.reset();
}

std::string Driver::name() const {
  return concat(host_, ':', mesh_->port());
}

void Driver::send(const Node& node, node::Body body) {
  mesh_->send(node.peer, kHost, kHost, encode(NodeEnvelope{number_, std::move(body)}));
}

// ---- before the start ----

Status Driver::prepare(const Job& job) {
  data_ = job.data;
  call_all();
  if (const auto reached = problems(); !reached) return reached;
  ask_.version = leeway_version();
  ask_.who = options_.who;
  ask_.plan = Message(encode(plan_), {});
  ask_.data = job.data_checksum > 0 ? mark_of(job.data, job.data_checksum) : mark_of(job.data);
  ask_.trace = options_.trace;
  ask_.trace_messages = options_.trace_messages;
  ask_.initial_weights = job.initial_weights;
  if (const auto& store = job.checkpoints)
    ask_.checkpoints = {store->folder(), job.run, store->writer(),
                        !plan_.checkpoints.directory.empty()};
  if (job.resumed)
    ask_.resumed = {job.resumed->folder, job.resumed->manifest.number,
                    to_json(job.resumed->manifest)};
  for (std::size_t i = 1; i < nodes_.size(); ++i) ask(i);
  await({Step::asked, Step::asking_clock}, options_.answer_limit, "an answer");
  if (const auto answered = problems(); !answered) return answered;
  for (std::size_t i = 1; i < nodes_.size(); ++i)
    say(concat("node ", i, " is ", nodes_[i].name, ": ", nodes_[i].facts));
  return ship_all();
}

void Driver::call_all() {
  std::vector<std::future<Expected<PeerId>>> calls;
  for (std::size_t i = 1; i < nodes_.size(); ++i)
    calls.push_back(std::async(std::launch::async, [this, i]() -> Expected<PeerId> {
      const auto name = parse_node(nodes_[i].name);
      if (!name) return name.error();
      return mesh_->connect(
          name->host, name->port, options_.call_limit,
          concat("check the address, and start `",
                 cluster::node_command(nodes_[i].name, options_.mesh.tls), "` there"));
    }));
  for (std::size_t i = 1; i < nodes_.size(); ++i) {
    const auto peer = calls[i - 1].get();
    if (!peer) {
      // The mesh begins with the name, as the list of problems does.
      const std::string& text = peer.error().text;
      const std::string name = nodes_[i].name + ": ";
      nodes_[i].problem = text.starts_with(name) ? text.substr(name.size()) : text;
      continue;
    }
    nodes_[i].peer = *peer;
    for (std::size_t other = 1; other < i; ++other)
      if (nodes_[other].problem.empty() && nodes_[other].peer == *peer)
        nodes_[i].problem = concat("is the same node as ", nodes_[other].name, "; name it once");
  }
}

void Driver::ask(std::size_t index) {
  node::Ask ask = ask_;
  ask.self = static_cast<std::uint32_t>(index);
  for (const Node& node : nodes_) ask.nodes.push_back(node.has_left() ? "" : node.name);
  const auto lost = missing();
  for (const NodeIndex node : placement_.shards) ask.shards.push_back(node.value());
  for (std::uint32_t i = 0; i < placement_.workers.size(); ++i)
    ask.workers.push_back((lost.contains(WorkerId(i)) ? kNowhere : placement_.workers[i]).value());
  nodes_[index].step = Step::asked;
  send(nodes_[index], std::move(ask));
}

void Driver::await(const std::set<Step>& steps, Duration limit, const std::string& what) {
  const std::int64_t began = steady_ns();
  // A node that loads a checkpoint from here asks for pieces of its files meanwhile.
  const auto until = [&] { return std::max(began, last_file_request_ns()) + limit.ns; };
  const auto waiting = [&](const Node& node) {
    return node.problem.empty() && steps.contains(node.step);
  };
  const auto has_problem = [](const Node& node) { return !node.problem.empty(); };
  std::optional<std::int64_t> hurry;  // soon after the first problem, so that no other is blamed
  while (std::any_of(nodes_.begin() + 1, nodes_.end(), waiting)) {
    if (options_.interrupted && options_.interrupted()) return;
    if (hurry && steady_ns() > *hurry) return;
    if (steady_ns() > until()) break;
    poll(kPollTime);
    if (!hurry && std::any_of(nodes_.begin(), nodes_.end(), has_problem))
      hurry = std::min(until() - 1, steady_ns() + kHurry.ns);
  }
  for (Node& node : nodes_)
    if (waiting(node))
      node.problem = concat("has not sent ", what, " within ", limit.seconds(),
                            " s; look at the node's terminal");
}

Status Driver::problems() {
  std::string text;
  std::size_t count = 0;
  for (const Node& node : nodes_) {
    if (node.problem.empty()) continue;
    text += concat("\n  ", node.name, ": ", node.problem);
    ++count;
  }
  const bool interrupted = options_.interrupted && options_.interrupted();
  if (count == 0 && !interrupted) return {};
  if (count == 0) return Error{"interrupted before the start"};
  return Error{concat("the job cannot start: ", count, " of ", nodes_.size() - 1,
                      nodes_.size() == 2 ? " node" : " nodes", " cannot take part", text)};
}

void Driver::ship(Node& node) {
  const auto& mark = ask_.data;
  const std::int64_t all = mark.train_samples + mark.test_samples;
  while (node.sent < all && node.sent - node.stored < kChunksAhead * samples_of_chunk(mark)) {
    const bool test = node.sent >= mark.train_samples;
    auto chunk = chunk_of(data_, mark, test, test ? node.sent - mark.train_samples : node.sent);
    node.sent += chunk.samples;
    send(node, std::move(chunk));
  }
}

Status Driver::ship_all() {
  const auto& mark = ask_.data;
  const std::int64_t all = mark.train_samples + mark.test_samples;
  std::int64_t shown = steady_ns(), stored = -1, moved_at = steady_ns();
  const auto shipping = [](const Node& node) {
    return node.step == Step::shipping && node.problem.empty();
  };
  while (std::any_of(nodes_.begin(), nodes_.end(), shipping)) {
    if (options_.interrupted && options_.interrupted()) break;
    poll(kPollTime);
    std::int64_t now_stored = 0;
    for (const Node& node : nodes_) now_stored += node.stored;
    if (std::exchange(stored, now_stored) != now_stored) moved_at = steady_ns();
    const bool stuck = steady_ns() - moved_at > options_.answer_limit.ns;
    const bool show = steady_ns() - shown > kShowEvery.ns;
    if (show) shown = steady_ns();
    for (Node& node : nodes_) {
      if (!shipping(node)) continue;
      if (stuck)
        node.problem = concat("has taken no data for ", options_.answer_limit.seconds(),
                              " s; look at the node's terminal");
      if (show) say(concat("sent to ", node.name, ": ", 100 * node.stored / all, "%"));
    }
  }
  return problems();
}

Status Driver::start(const std::shared_ptr<const Job>& job, const std::vector<Audience*>& audience,
                     ActorObservers observers) {
  observers_ = std::move(observers);
  std::vector<std::string> names;
  for (const Node& node : nodes_) names.push_back(node.name);
  JobNode::Options options{.number = number_,
                           .placement = placement_,
                           .self = kProgramNode,
                           .names = std::move(names),
                           .silence = options_.mesh.silence,
                           .on_event = {},
                           .on_message = observers_.on_message};
  options.on_event = [this](Address actor, Instant at, const Event& event) {
    if (observers_.on_event) observers_.on_event(actor, at, event);
    if (const auto* left = event.as<event::Left>())
      inbox_.push({MeshInbox::Item::Kind::left, {}, {}, {}, left->worker});
  };
  auto node = std::make_shared<JobNode>(*mesh_, with_copies(job), audience, std::move(options));
  {
    std::lock_guard lock(node_mutex_);
    node_ = std::move(node);
  }
  for (std::size_t i = 1; i < nodes_.size(); ++i) {
    node_->link(NodeIndex(static_cast<std::uint32_t>(i)), nodes_[i].peer, nodes_[i].name);
    nodes_[i].step = Step::linking;
    send(nodes_[i], node::Start{});
  }
  await({Step::linking}, options_.answer_limit, "the confirmation of its connections");
  if (const auto linked = problems(); !linked) return linked;
  node_->begin();
  begun_ = true;
  for (std::size_t i = 1; i < nodes_.size(); ++i) send(nodes_[i], node::Begin{});
  for (const auto& [peer, offer] : std::exchange(early_offers_, {})) on_offer(peer, offer);
  return {};
}

void Driver::finish() {
  finished_ = true;
  for (const Node& node : nodes_)
    if (node.takes_part()) send(node, node::End{"the run has ended"});
  const std::int64_t began = steady_ns();
  // A silent node gets less time than a node that answers.
  const auto awaited = [&](const Node& node) {
    const std::int64_t now = steady_ns();
    const bool silent = node.silent_since != 0 && now - began > kSilentEnd.ns;
    return node.takes_part() && !silent && now - began < options_.end_limit.ns;
  };
  while (std::any_of(nodes_.begin(), nodes_.end(), awaited)) poll(kPollTime);
  for (const Node& node : nodes_) {
    if (!node.takes_part()) continue;
    say(concat("node ", node.name,
               node.silent_since != 0
                   ? std::string(" is silent; its actors end when it continues")
                   : concat(" has not confirmed the end of its actors within ",
                            options_.end_limit.seconds(), " s; look at the node's terminal")));
  }
}

// ---- messages ----

void Driver::poll(Duration limit) {
  for (auto item = inbox_.take(limit); item; item = inbox_.take({})) handle(*item);
}

void Driver::handle(MeshInbox::Item& item) {
  using Kind = MeshInbox::Item::Kind;
  if (item.kind == Kind::note) return say(item.text);
  if (item.kind == Kind::left) return on_left(item.worker);
  std::size_t index = 1;
  while (index < nodes_.size() &&
         (nodes_[index].peer != item.peer || nodes_[index].step == Step::none))
    ++index;
  const bool known = index < nodes_.size();
  if (item.kind == Kind::message) {
    if (known && item.message->job == number_) return handle(index, item.message->body);
    return on_unknown_peer(item.peer, item.message->job, item.message->body);
  }
  if (item.kind == Kind::gone)
    std::erase_if(early_offers_, [&](const auto& early) { return early.first == item.peer; });
  if (!known) return;
  if (item.kind == Kind::gone) return on_gone(index, item.text);
  const bool silent = item.kind == Kind::silent;  // otherwise heard again
  nodes_[index].silent_since = silent ? steady_ns() : 0;
  if (!begun_ || finished_) return;
  if (silent)
    say(concat("node ", nodes_[index].name, ": no sign of life for ",
               options_.mesh.silence.seconds(), " s"));
  else
    say(concat("node ", nodes_[index].name, " is heard again"));
}

void Driver::handle(std::size_t index, node::Body& body) {
  Node& node = nodes_[index];
  if (node.files && node.files->handle(body)) return;
  if (const auto* answer = std::get_if<node::Answer>(&body)) return on_answer(index, *answer);
  if (const auto* pong = std::get_if<node::Pong>(&body)) return on_pong(index, *pong);
  if (const auto* stored = std::get_if<node::Stored>(&body)) {
    if (node.step != Step::shipping || stored->samples > node.sent) return;
    node.stored = stored->samples;
    if (node.stored < ask_.data.train_samples + ask_.data.test_samples) return ship(node);
    return next_step(index);
  }
  if (std::holds_alternative<node::Linked>(body)) {
    if (node.step != Step::linking) return;
    node.step = Step::running;
    if (node.joins) on_joined(index);
    return;
  }
  if (const auto* refused = std::get_if<node::Refused>(&body)) {
    say(concat("node ", node.name, ": ", refused->text));
    node.problem = refused->text;
    return;
  }
  if (std::holds_alternative<node::Done>(body)) {
    node.step = Step::ended;
    if (node.files) node.files->close("the node has left the job");
    return;
  }
  if (const auto* effects = std::get_if<node::Effects>(&body)) {
    if (!node_ || std::exchange(node.counted, true)) return;
    if (const auto added = add_effects(*effects, *node_->job()); !added)
      say(concat("node ", node.name, " sent ", added.error().text));
    return;
  }
  if (std::holds_alternative<node::Leaving>(body)) return on_leaving(index);
  if (const auto* events = std::get_if<node::Events>(&body)) return on_events(node, *events);
  if (auto* messages = std::get_if<node::Messages>(&body)) return on_messages(node, *messages);
  if (!node_) return;
  if (const auto* ended = std::get_if<node::Ended>(&body)) return node_->ended(*ended);
  if (const auto* moved = std::get_if<node::Moved>(&body)) return on_moved(index, *moved);
  on_unknown_peer(node.peer, number_, body);
}

void Driver::on_unknown_peer(PeerId peer, std::uint64_t job, const node::Body& body) {
  if (const auto* offer = std::get_if<node::Offer>(&body)) return on_offer(peer, *offer);
  if (std::holds_alternative<node::Ask>(body)) {
    node::Answer answer;
    answer.version = leeway_version();
    answer.problems = {
        concat("is the program of ", options_.who, ", not a node; give the addresses of nodes")};
    mesh_->send(peer, kHost, kHost, encode(NodeEnvelope{job, std::move(answer)}));
  }
  if (!std::holds_alternative<node::StatusRequest>(body)) return;
  node::Status status;
  status.version = leeway_version();
  status.program = true;
  status.name = name();
  if (node_) node_->fill(status);
  mesh_->send(peer, kHost, kHost, encode(NodeEnvelope{0, std::move(status)}));
}

void Driver::on_answer(std::size_t index, const node::Answer& answer) {
  Node& node = nodes_[index];
  if (node.step != Step::asked) return;
  std::vector<std::string> problems = answer.problems;
  if (!answer.busy.empty())
    problems.push_back(concat("is busy: ", answer.busy, "; wait for its end, or give other nodes"));
  if (problems.empty() && answer.version != leeway_version())
    problems.push_back(concat("it has Leeway ", answer.version, ", this program has ",
                              leeway_version(), "; use the same version everywhere"));
  node.problem = join(problems, "; ");
  if (!node.problem.empty()) {
    if (node.joins) {
      say(concat("node ", node.name, " cannot join: ", node.problem));
      send(node, node::Refused{node.problem});
    }
    node.step = node.joins ? Step::gone : Step::none;
    return;
  }
  node.facts = concat(answer.cores, answer.cores == 1 ? " core, " : " cores, ",
                      size_text(static_cast<double>(answer.memory_bytes)),
                      answer.gpus > 0 ? concat(", GPUs: ", answer.gpus) : std::string());
  node.wants_data = answer.wants_data;
  exchange_files(index, answer);
  if (!options_.trace && !options_.trace_messages) return next_step(index);
  node.step = Step::asking_clock;
  send(node, node::Ping{steady_ns()});
}

void Driver::on_pong(std::size_t index, const node::Pong& pong) {
  Node& node = nodes_[index];
  if (node.step != Step::asking_clock) return;
  const std::int64_t now = steady_ns();
  const std::int64_t round_trip = now - pong.ns;
  if (node.pings == 0 || round_trip < node.round_trip) {
    node.round_trip = round_trip;
    node.clock_ahead = pong.clock_ns - (pong.ns + round_trip / 2);
  }
  if (++node.pings < kPings) return send(node, node::Ping{steady_ns()});
  next_step(index);
}

void Driver::next_step(std::size_t index) {
  Node& node = nodes_[index];
  if (node.wants_data && node.stored == 0) {
    node.step = Step::shipping;
    const auto& mark = ask_.data;
    const std::int64_t all = mark.train_samples + mark.test_samples;
    const auto bytes = static_cast<double>(all * (mark.shape.count() + 1)) * sizeof(float);
    say(concat("sending the data to ", node.name, ": ", all, " samples, ", size_text(bytes)));
    return ship(node);
  }
  node.step = Step::ready;
  if (!node.joins) return;
  node.step = Step::linking;
  send(node, node::Start{});
}

void Driver::on_events(const Node& node, const node::Events& events) {
  if (!observers_.on_event || !node_) return;
  for (const auto& emitted : events.events) {
    const Instant at{emitted.ns - node.clock_ahead - node_->began_ns()};
    observers_.on_event(emitted.actor, at, emitted.event);
  }
}

void Driver::on_messages(const Node& node, node::Messages& messages) {
  if (!observers_.on_message || !node_) return;
  for (auto& one : messages.messages) {
    const Instant at{one.ns - node.clock_ahead - node_->began_ns()};
    observers_.on_message({at, one.from, one.to, std::move(one.header), one.tensor_bytes});
  }
}

void Driver::on_gone(std::size_t index, const std::string& reason) {
  Node& node = nodes_[index];
  if (node.step == Step::gone) return;
  const bool expected = node.step == Step::ended || finished_;
  if (!expected) {
    if (node.problem.empty()) node.problem = concat("is gone: ", reason);
    if (begun_) say(concat("node ", node.name, " is gone: ", reason));
  }
  node.step = Step::gone;
  if (node.files) node.files->close("the node is gone");
  for (Move& move : moves_) move.unaware.erase(index);
  finish_moves();
}

}  // namespace leeway
