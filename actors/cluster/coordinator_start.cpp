// Coordinator: from the first call to the start of the job.
#include <algorithm>
#include <utility>

#include "actors/cluster/coordinator.hpp"
#include "core/check.hpp"
#include "core/text.hpp"
#include "plan/fault_queries.hpp"

namespace leeway {
namespace {

constexpr int kPings = 5;
/// Pieces of data in flight to one node.
constexpr std::int64_t kPiecesAhead = 8;
/// Between two progress lines.
constexpr Duration kShowEvery = seconds(2), kShowLoadingEvery = seconds(10);

}  // namespace

// ---- phases ----

void Coordinator::prepare(std::shared_ptr<const Stages> stages,
                          const std::vector<plan::Fault>& faults, node::Ask ask) {
  LW_CHECK(phase_ == Phase::idle, "prepare() is called once");
  stages_ = std::move(stages);
  ask_ = std::move(ask);
  for (std::uint32_t i = 0; i < placement_.workers.size(); ++i) {
    const bool later =
        placement_.workers[i] == kNowhere || joins_later(faults, address_of(WorkerId(i)));
    launches_.push_back(later ? 0 : 1);
    homes_.push_back(placement_.workers[i]);
  }
  replicas_.resize(placement_.standbys.size());
  for (std::size_t i = 1; i < nodes_.size(); ++i) enter(nodes_[i], Step::calling);
  enter(Phase::calling);
  for (std::size_t i = 1; i < nodes_.size(); ++i) site_.call(index_of(i), nodes_[i].name);
  advance();
}

void Coordinator::start(bool norms) {
  LW_CHECK(phase_ == Phase::ready, "start() follows prepare()");
  norms_ = norms;
  enter(Phase::linking);
  for (const std::size_t i : present()) {
    site_.link(index_of(i), *nodes_[i].peer, nodes_[i].name);
    start(nodes_[i]);
  }
  advance();
}

void Coordinator::enter(Phase phase) {
  phase_ = phase;
  phase_since_ = shown_ = site_.now_ns();
}

void Coordinator::enter(Node& node, Step step) {
  node.step = step;
  node.since = site_.now_ns();
}

std::vector<std::size_t> Coordinator::present() const {
  std::vector<std::size_t> indices;
  for (std::size_t i = 1; i < nodes_.size(); ++i)
    if (!nodes_[i].has_left()) indices.push_back(i);
  return indices;
}

bool Coordinator::is_awaited(const Node& node) const {
  if (!node.problem.empty() || node.joins) return false;
  switch (phase_) {
    case Phase::calling:
      return node.step == Step::calling;
    case Phase::asking:
      return node.step == Step::asked || node.step == Step::asking_clock;
    case Phase::shipping:
      return node.step == Step::shipping;
    case Phase::linking:
      return node.step == Step::linking;
    default:
      return false;
  }
}

void Coordinator::advance() {
  const auto awaited = [this](const Node& node) { return is_awaited(node); };
  while (true) {
    const bool prepares = phase_ >= Phase::calling && phase_ <= Phase::shipping;
    if (!prepares && phase_ != Phase::linking) return;
    const bool failed = !problems();
    const bool spares = failed && prepares && can_spare_nodes();
    if (std::any_of(nodes_.begin() + 1, nodes_.end(), awaited)) {
      if (!failed || spares) return;
      if (!hurry_) hurry_ = site_.now_ns() + options_.hurry.ns;
      // A call ends in time by itself.
      if (phase_ == Phase::calling || site_.now_ns() < *hurry_) return;
    }
    if (failed && !spares) return enter(Phase::failed);
    if (spares) start_without_nodes();
    if (phase_ == Phase::calling || spares) {
      enter(Phase::asking);
      for (const std::size_t i : present()) ask(i);
    } else if (phase_ == Phase::asking) {
      check_replicas();
      if (!problems()) continue;
      for (const std::size_t i : present())
        site_.say(concat("node ", i, " is ", nodes_[i].name, ": ", nodes_[i].facts));
      enter(Phase::shipping);
    } else if (phase_ == Phase::shipping) {
      enter(Phase::ready);
    } else {
      enter(Phase::running);
      site_.begin();
      for (const std::size_t i : present()) send(nodes_[i], node::Begin{});
      return answer_offers();
    }
  }
}

Status Coordinator::problems() const {
  std::string text;
  std::size_t count = 0;
  for (const Node& node : nodes_) {
    if (node.problem.empty()) continue;
    text += concat("\n  ", node.name, ": ", node.problem);
    ++count;
  }
  if (count == 0) return {};
  return Error{concat("the job cannot start: ", count, " of ", nodes_.size() - 1,
                      nodes_.size() == 2 ? " node" : " nodes", " cannot take part", text)};
}

bool Coordinator::can_spare_nodes() const {
  if (options_.at_least == 0) return false;
  const auto can_take_part = [](const Node& node) {
    return node.problem.empty() && !node.has_left();
  };
  const auto count = std::count_if(nodes_.begin() + 1, nodes_.end(), can_take_part);
  if (count < std::max<std::int64_t>(options_.at_least, 1)) return false;
  // Of some pipeline, all stages have a node.
  std::set<WorkerId> incomplete;
  for (std::uint32_t i = 0; i < placement_.workers.size(); ++i) {
    const NodeIndex node = placement_.workers[i];
    const bool has_node =
        node == kProgramNode || (node != kNowhere && can_take_part(nodes_[node.value()]));
    if (!has_node) incomplete.insert(stages_->lead_of(WorkerId(i)));
  }
  return incomplete.size() < stages_->pipelines();
}

void Coordinator::start_without_nodes() {
  std::vector<NodeIndex> others;
  for (std::size_t i = 1; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    if (node.problem.empty()) {
      if (node.has_left()) continue;
      others.push_back(index_of(i));
      if (node.step >= Step::asked) {
        ++node.asked_again;
        send(node, node::End{"the job starts without another node"});
      }
      continue;
    }
    const std::string problem = std::exchange(node.problem, {});
    site_.say(concat("starts without node ", node.name, ", and calls it again: ", problem));
    if (!node.has_left()) give_up(i, node::End{problem}, problem);
  }
  const auto has_left = [&](NodeIndex node) {
    return node == kNowhere || nodes_[node.value()].has_left();
  };
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < placement_.shards.size(); ++i) {
    NodeIndex& node = placement_.shards[i];
    if (!has_left(node)) continue;
    const bool has_standby = !replicas_.empty() && !has_left(placement_.standbys[i]);
    node = has_standby ? std::exchange(placement_.standbys[i], kNowhere)
                       : others[next++ % others.size()];
  }
  for (std::uint32_t i = 0; i < placement_.standbys.size(); ++i)
    if (NodeIndex& node = placement_.standbys[i]; has_left(node))
      node = node_for_standby(ShardId(i), placement_, others, hosts_of(names()));
  for (std::uint32_t i = 0; i < placement_.workers.size(); ++i) {
    NodeIndex& node = placement_.workers[i];
    if (node == kNowhere || !nodes_[node.value()].has_left()) continue;
    node = kNowhere;
    launches_[i] = 0;
  }
}

void Coordinator::has_problem(std::size_t index, std::string problem) {
  Node& node = nodes_[index];
  node.problem = std::move(problem);
  if (!node.joins) return;
  // The job goes on without it. A node that is called again may have the same problem each time.
  if (node.last_refusal != node.problem)
    site_.say(concat("node ", node.name, " cannot join: ", node.problem));
  node.last_refusal = node.problem;
  give_up(index, node::Refused{node.problem}, node.problem);
}

void Coordinator::check_limits() {
  // A node that loads a checkpoint from here asks for pieces of its files meanwhile.
  const std::int64_t now = site_.now_ns(), asked = site_.last_file_request_ns();
  for (std::size_t i = 1; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    if (!node.problem.empty() || now - std::max(node.since, asked) <= options_.answer_limit.ns)
      continue;
    const auto late = [&](const std::string& what) {
      has_problem(
          i, concat(what, " ", options_.answer_limit.seconds(), " s; look at the node's terminal"));
    };
    if (node.step == Step::asked || node.step == Step::asking_clock)
      late("has not sent an answer within");
    else if (node.step == Step::linking)
      late("has not sent the confirmation of its connections within");
    else if (node.step == Step::shipping)
      late("has taken no data for");
  }
}

// ---- requests and their answers ----

void Coordinator::ask(std::size_t index) {
  Node& asked = nodes_[index];
  asked.sent = asked.stored = 0;
  asked.pings = 0;
  asked.asked_at = site_.now_ns();
  asked.loading_shown_at = 0;
  node::Ask ask = ask_;
  ask.self = static_cast<std::uint32_t>(index);
  for (const Node& node : nodes_) ask.nodes.push_back(node.has_left() ? "" : node.name);
  const auto lost = missing();
  for (const NodeIndex node : placement_.shards) ask.shards.push_back(node.value());
  for (const NodeIndex node : placement_.standbys) ask.standbys.push_back(node.value());
  for (std::uint32_t i = 0; i < placement_.workers.size(); ++i)
    ask.workers.push_back((lost.contains(WorkerId(i)) ? kNowhere : placement_.workers[i]).value());
  enter(asked, Step::asked);
  send(asked, std::move(ask));
}

void Coordinator::on_loading(Node& node) {
  if (node.step != Step::asked) return;
  const std::int64_t now = node.since = site_.now_ns();
  const bool is_first = node.loading_shown_at == 0;
  if (!is_first && now - node.loading_shown_at < kShowLoadingEvery.ns) return;
  node.loading_shown_at = now;
  if (is_first) return site_.say(concat("node ", node.name, " loads the data"));
  site_.say(concat("node ", node.name, " still loads the data, after ",
                   (now - node.asked_at) / seconds(1).ns, " s"));
}

bool Coordinator::is_slow(const Node& node) const {
  return node.joins && node.step == Step::asked &&
         site_.now_ns() - node.asked_at > options_.answer_limit.ns;
}

void Coordinator::on_answer(std::size_t index, const node::Answer& answer) {
  Node& node = nodes_[index];
  if (node.step != Step::asked) return;
  std::vector<std::string> problems = answer.problems;
  if (!answer.busy.empty())
    problems.push_back(concat("is busy: ", answer.busy, "; wait for its end, or give other nodes"));
  if (problems.empty() && answer.version != ask_.version)
    problems.push_back(concat("it has Leeway ", answer.version, ", this program has ", ask_.version,
                              "; use the same version everywhere"));
  if (!problems.empty()) {
    if (!node.joins) node.step = Step::none;
    return has_problem(index, join(problems, "; "));
  }
  node.facts = concat(answer.cores, answer.cores == 1 ? " core, " : " cores, ",
                      size_text(answer.memory_bytes),
                      answer.gpus > 0 ? concat(", GPUs: ", answer.gpus) : std::string());
  node.arithmetic = answer.arithmetic;
  node.wants_data = answer.wants_data;
  if (is_slow(node)) node.takes = missing_for(node);
  if (node.joins && node.last_refusal.empty()) site_.say(concat("node ", node.name, " joins"));
  site_.accepted(index_of(index), *node.peer, node.name, answer);
  if (!options_.measure_clocks) return after_answer(index);
  enter(node, Step::asking_clock);
  send(node, node::Ping{site_.now_ns()});
}

void Coordinator::on_pong(std::size_t index, const node::Pong& pong) {
  Node& node = nodes_[index];
  if (node.step == Step::running) {
    node.answered_ns = pong.ns;
    if (phase_ == Phase::running) move_replicas();
    return;
  }
  if (node.step != Step::asking_clock) return;
  const std::int64_t round_trip = site_.now_ns() - pong.ns;
  if (node.pings == 0 || round_trip < node.round_trip) {
    node.round_trip = round_trip;
    node.clock_ahead = pong.clock_ns - (pong.ns + round_trip / 2);
  }
  if (++node.pings < kPings) return send(node, node::Ping{site_.now_ns()});
  after_answer(index);
}

void Coordinator::after_answer(std::size_t index) {
  Node& node = nodes_[index];
  if (node.wants_data && node.stored < samples()) {
    enter(node, Step::shipping);
    const std::int64_t bytes =
        samples() * (ask_.data.shape.count() + 1) * static_cast<std::int64_t>(sizeof(float));
    site_.say(
        concat("sending the data to ", node.name, ": ", samples(), " samples, ", size_text(bytes)));
    return ship(node);
  }
  enter(node, Step::ready);
  if (node.joins) start(node);
}

void Coordinator::start(Node& node) {
  node::Start order;
  for (const Node& other : nodes_)
    order.nodes.push_back(other.step == Step::linking || other.step == Step::running ? other.name
                                                                                     : "");
  enter(node, Step::linking);
  node.was_started = true;
  send(node, std::move(order));
}

// ---- data ----

void Coordinator::ship(Node& node) {
  while (node.sent < samples() && node.sent - node.stored < kPiecesAhead * node.piece_samples) {
    auto piece = site_.piece(ask_.data, node.sent);
    LW_CHECK(piece.samples > 0, node.sent);
    node.piece_samples = std::max<std::int64_t>(node.piece_samples, piece.samples);
    node.sent += piece.samples;
    send(node, std::move(piece));
  }
}

void Coordinator::on_stored(std::size_t index, const node::Stored& stored) {
  Node& node = nodes_[index];
  if (node.step != Step::shipping || stored.samples > node.sent) return;
  if (stored.samples > node.stored) node.since = site_.now_ns();
  node.stored = stored.samples;
  if (node.stored < samples()) return ship(node);
  after_answer(index);
}

void Coordinator::show_shipping() {
  const std::int64_t now = site_.now_ns();
  if (now - shown_ < kShowEvery.ns) return;
  shown_ = now;
  for (const Node& node : nodes_)
    if (is_awaited(node))
      site_.say(concat("sent to ", node.name, ": ", 100 * node.stored / samples(), "%"));
}

// ---- connections ----

void Coordinator::on_linked(std::size_t index) {
  Node& node = nodes_[index];
  if (node.step != Step::linking) return;
  enter(node, Step::running);
  if (!node.joins) return;
  node.last_refusal.clear();
  site_.link(index_of(index), *node.peer, node.name);
  send(node, node::Begin{});
  // The program's own workers may have been launched again; other nodes have reported theirs.
  for (std::uint32_t i = 0; i < launches_.size(); ++i)
    if (placement_.workers[i] == kProgramNode && launches_[i] > 0)
      send(node, node::Moved{worker(i), kProgramNode.value(), launches_[i]});
  for (std::uint32_t i = 0; i < replicas_.size(); ++i) {
    if (placement_.shards[i] == kProgramNode)
      send(node, node::Moved{shard(i), kProgramNode.value(), replicas_[i].primary_launch});
    if (placement_.standbys[i] == kProgramNode)
      send(node, node::Moved{standby(i), kProgramNode.value(), replicas_[i].standby_launch});
  }
  const auto taken = std::exchange(node.takes, {});
  const auto begin = [&](WorkerId worker, NodeIndex there) {
    launch_again(worker, there);
    site_.say(concat("worker ", worker, " continues at node ", nodes_[there.value()].name));
  };
  for (const WorkerId worker : stopped_with(taken))
    begin(worker, placement_.workers[worker.value()]);
  for (const WorkerId worker : taken) begin(worker, index_of(index));
  launch_standbys();
}

}  // namespace leeway
