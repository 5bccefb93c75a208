#include "actors/cluster/agent.hpp"

#include <algorithm>
#include <utility>

#include "core/mutant.hpp"
#include "core/text.hpp"

namespace leeway {

Placement placement_of(const node::Ask& ask) {
  Placement placement;
  placement.nodes = static_cast<std::uint32_t>(ask.nodes.size());
  for (const std::uint32_t node : ask.shards) placement.shards.emplace_back(node);
  for (const std::uint32_t node : ask.workers) placement.workers.emplace_back(node);
  for (const std::uint32_t node : ask.standbys) placement.standbys.emplace_back(node);
  return placement;
}

// ---- inputs ----

void Agent::called_program(const Expected<PeerId>& program) {
  if (!program) {
    outcome_ = program.error();
    finished_ = true;
    return;
  }
  offered_to_ = *program;
  offered_at_ = site_.now_ns();
  if (join_until_ == 0) join_until_ = offered_at_ + options_.join_wait.ns;
  held_ = false;
  // The call may have taken the rest of the time.
  const std::int64_t left = std::max<std::int64_t>(0, join_until_ - offered_at_);
  reply(*program, node::Offer{site_.name(), Duration{left}});
}

void Agent::received(PeerId peer, std::uint64_t job, node::Body& body) {
  if (auto* ask = std::get_if<node::Ask>(&body)) return on_ask(peer, job, *ask);
  if (const auto* ping = std::get_if<node::Ping>(&body))
    return reply(peer, node::Pong{ping->ns, site_.now_ns()}, job);
  if (std::holds_alternative<node::Offer>(body)) return on_offer(peer);
  if (offered_to_ == peer && !hosted_) {
    if (const auto* refused = std::get_if<node::Refused>(&body)) {
      outcome_ = Error{refused->text};
      finished_ = true;
    } else if (const auto* held = std::get_if<node::Held>(&body)) {
      held_ = true;
      site_.say(concat("waits at ", options_.join, " for ", held->text));
    }
    return;
  }
  if (!hosted_ || hosted_->number != job) {  // the job is over, or has not begun
    if (std::holds_alternative<node::Here>(body))
      reply(peer, node::Refused{"takes no part in the job"}, job);
    return;
  }
  if (const auto* here = std::get_if<node::Here>(&body)) return on_here(peer, *here);
  if (is_program(peer)) return on_order(body);
  if (const auto* refused = std::get_if<node::Refused>(&body)) gone_unlinked(peer, refused->text);
}

void Agent::silent(PeerId peer) {
  if (is_program(peer)) hosted_->silent_since = site_.now_ns();
  report_link(peer, node::LinkState::State::silent);
}

void Agent::heard(PeerId peer) {
  if (is_program(peer)) hosted_->silent_since = 0;
  report_link(peer, node::LinkState::State::heard);
}

void Agent::gone(PeerId peer, const std::string& reason) {
  waiting_.erase(peer);
  report_link(peer, node::LinkState::State::gone);
  if (const auto node = node_of(peer)) hosted_->links.erase(*node);
  if (is_program(peer)) lose_program(concat("the program is gone: ", reason));
  if (hosted_) gone_unlinked(peer, reason);
  // After the end of the job, the program may leave at once.
  if (finished_ || offered_to_ != peer || hosted_) return;
  if (outcome_) outcome_ = Error{concat(options_.join, " is gone: ", reason)};
  finished_ = true;
}

void Agent::gone_unlinked(PeerId peer, const std::string& reason) {
  std::erase_if(hosted_->called, [&](const auto& one) { return one.second.first == peer; });
  const auto found =
      std::ranges::find(hosted_->calls, peer, &std::pair<const NodeIndex, PeerId>::second);
  if (found == hosted_->calls.end()) return;
  const NodeIndex node = found->first;
  hosted_->calls.erase(found);
  if (hosted_->step == Step::linking) cannot_reach(hosted_->to_call[node] + ": " + reason);
}

void Agent::cannot_reach(const std::string& what) {
  const std::int64_t again = site_.now_ns() + options_.join_again.ns;
  // Its own end of the job is then no reason to end.
  if (offered_to_ && !leaving_ && again < join_until_) {
    offered_to_.reset();
    join_again_ = again;
  }
  give_up("cannot reach node " + what);
  if (join_again_ == again)
    site_.say(concat("joins again in ", options_.join_again.seconds(), " s"));
}

void Agent::report_link(PeerId peer, node::LinkState::State state) {
  if (planted(Mutant::link_loss_not_reported)) return;
  if (const auto node = node_of(peer)) to_program(node::LinkState{node->value(), state});
}

void Agent::returned(WorkerId worker) {
  if (hosted_ && hosted_->step == Step::running) to_program(node::Returned{worker});
}

void Agent::tick() {
  const std::int64_t now = site_.now_ns();
  if (join_again_ > 0 && now >= join_again_) {
    join_again_ = 0;
    site_.call_program();
  }
  if (!hosted_ && offered_to_ && !held_ && !finished_ &&
      now - offered_at_ > options_.offer_limit.ns) {
    outcome_ =
        Error{concat(options_.join, " has not answered within ", options_.offer_limit.seconds(),
                     " s; give the address that a program with --nodes prints at its start, "
                     "not that of a node")};
    finished_ = true;
  }
  if (!waiting_.empty() && !program_in_doubt() && !is_joining())
    for (auto& [peer, asked] : std::exchange(waiting_, {})) on_ask(peer, asked.job, asked.ask);
  if (!hosted_) return;
  if (hosted_->step == Step::loading && now - hosted_->reported_at > options_.report_loading.ns) {
    hosted_->reported_at = now;
    if (!planted(Mutant::loading_not_reported)) to_program(node::LoadingData{});
  }
  if (hosted_->leave_by > 0 && now > hosted_->leave_by) {
    if (site_.has_replica()) {
      hosted_->leave_by = now + options_.leave_limit.ns;
      return site_.warn(concat("still has a shard of ", hosted_->text(),
                               " until its standby on another node has the state; if no other "
                               "node runs, start one with `leeway join`. Press Ctrl-C again to "
                               "end at once"));
    }
    return end_job(concat("its workers did not stop within ", options_.leave_limit.seconds(),
                          " s and were ended"));
  }
  if (hosted_->silent_since == 0 || now - hosted_->silent_since <= options_.program_silence.ns)
    return;
  const PeerId program = hosted_->program;
  lose_program(
      concat("no sign of life from the program for ", options_.program_silence.seconds(), " s"));
  site_.leave(program);
}

// ---- requests ----

void Agent::on_offer(PeerId peer) {
  std::string text = concat(site_.name(),
                            " is a node, not a program; give the address that the program "
                            "prints at its start");
  if (hosted_) text += concat("; the program of its job is at ", hosted_->names[0]);
  reply(peer, node::Refused{std::move(text)});
}

void Agent::warn_of_refusal(const std::string& text) {
  if (std::exchange(last_refusal_, text) != text) site_.warn(text);
}

void Agent::on_ask(PeerId peer, std::uint64_t job, node::Ask& ask) {
  // Also when it calls its own program, which may be the one that asks.
  if (!leaving_ && (program_in_doubt() || is_joining())) {
    waiting_.insert_or_assign(peer, WaitingAsk{job, std::move(ask)});
    return;
  }
  node::Answer answer;
  if (leaving_) {
    answer.busy = "it is shutting down";
  } else if (hosted_ && !planted(Mutant::second_job_taken)) {
    if (is_program(peer) && hosted_->number == job) return;  // answered when the data is loaded
    answer.busy = concat("it has been hosting ", hosted_->text(), " since ", hosted_->since);
  } else if (offered_to_ && offered_to_ != peer) {
    answer.busy = concat("it waits at ", options_.join, " for a part of that program's job");
  }
  if (!answer.busy.empty()) {
    warn_of_refusal(concat("refused the job of ", ask.who, ": ", answer.busy));
    return reply(peer, std::move(answer), job);
  }
  if (!site_.reserve(peer, job, ask, answer)) {
    warn_of_refusal(concat("cannot take the job of ", ask.who, ": ", join(answer.problems, "; ")));
    return reply(peer, std::move(answer), job);
  }
  const Placement placement = placement_of(ask);
  const NodeIndex self(ask.self);
  hosted_ = HostedJob{.program = peer,
                      .number = job,
                      .who = ask.who,
                      .self = self,
                      .names = ask.nodes,
                      .placement = placement,
                      .actors = placement.actors_text(self),
                      .answer = std::move(answer),
                      .since = site_.time_of_day(),
                      .reported_at = site_.now_ns()};
  site_.load_data();
}

void Agent::loaded(bool has_data) {
  if (!hosted_ || hosted_->step != Step::loading) return;
  hosted_->step = Step::reserved;
  hosted_->has_data = has_data;
  hosted_->answer.wants_data = !has_data;
  to_program(std::move(hosted_->answer));
}

void Agent::on_order(const node::Body& body) {
  HostedJob& hosted = *hosted_;
  if (const auto* piece = std::get_if<node::DataPiece>(&body)) return on_piece(*piece);
  if (const auto* start = std::get_if<node::Start>(&body)) {
    if (hosted.step != Step::reserved) return;
    if (!hosted.has_data) return give_up("it has no data yet");
    for (std::uint32_t other = 1; other < start->nodes.size(); ++other)
      if (!start->nodes[other].empty() && NodeIndex(other) != hosted.self)
        hosted.to_call.emplace(other, start->nodes[other]);
    hosted.step = Step::making;
    return site_.make_actors();
  }
  if (const auto* end = std::get_if<node::End>(&body)) return end_job(end->text);
  if (const auto* refused = std::get_if<node::Refused>(&body)) {
    if (offered_to_) outcome_ = Error{refused->text};
    return end_job(refused->text);
  }
  if (std::holds_alternative<node::Begin>(body)) {
    if (hosted.step != Step::linked) return;
    hosted.step = Step::running;
    site_.begin();
    return site_.say(concat("began ", hosted.text(), ": ", hosted.actors));
  }
  if (hosted.step != Step::running) return;
  if (const auto* begin = std::get_if<node::Launch>(&body)) {
    const RoleKind kind = begin->actor.kind;
    const bool can_begin = kind == RoleKind::worker || kind == RoleKind::standby;
    if (!can_begin || !hosted.placement.find(begin->actor)) return;
    site_.launch(begin->actor, begin->launch);
    site_.say(concat(begin->actor, " of ", hosted.text(),
                     kind == RoleKind::worker ? " continues here" : " begins here"));
  } else if (const auto* over = std::get_if<node::EndLaunch>(&body)) {
    site_.end_launch(over->actor, over->launch, over->reason);
    site_.warn(concat(over->actor, " of ", hosted.text(), " ends: ", over->reason));
  } else if (const auto* relink = std::get_if<node::Relink>(&body)) {
    const NodeIndex node(relink->node);
    if (node != kProgramNode && node < hosted.self && !hosted.links.contains(node))
      site_.call(node, hosted.names[node.value()]);
  } else if (std::holds_alternative<node::Left>(body) && hosted.leave_by > 0) {
    end_job("its actors here have left it");
  }
}

void Agent::on_piece(const node::DataPiece& piece) {
  if (hosted_->step != Step::reserved || hosted_->has_data) return;
  const auto samples = site_.store(piece, hosted_->has_data);
  if (!samples) return give_up(samples.error().text);
  if (hosted_->has_data)
    site_.say(concat("received the data of ", hosted_->text(), ": ", *samples, " samples"));
  to_program(node::Stored{*samples});
}

// ---- the connections of a job ----

void Agent::made(const Status& outcome) {
  if (!hosted_ || hosted_->step != Step::making) return;
  if (!outcome) return give_up(outcome.error().text);
  HostedJob& hosted = *hosted_;
  hosted.step = Step::linking;
  site_.link(kProgramNode, hosted.program, hosted.names[0]);
  for (const auto& [node, caller] : std::exchange(hosted.called, {}))
    on_here(caller.first, caller.second);
  for (const auto& [node, name] : hosted.to_call) site_.call(node, name);
  linked_if_complete();
}

void Agent::called(NodeIndex node, const Expected<PeerId>& peer) {
  if (!hosted_ || hosted_->step < Step::linking) return;
  if (peer) {
    hosted_->calls[node] = *peer;
    return reply(*peer, here(), hosted_->number);
  }
  if (hosted_->step == Step::linking) cannot_reach(peer.error().text);
}

node::Here Agent::here() const {
  node::Here here{hosted_->self.value(), site_.name(), {}};
  for (const auto& [actor, launch] : site_.hosted()) here.hosted.push_back({actor, launch});
  return here;
}

void Agent::on_here(PeerId peer, const node::Here& there) {
  const NodeIndex node(there.node);
  if (node == kProgramNode || node == hosted_->self) return;
  if (hosted_->step < Step::linking) {
    hosted_->called[node] = {peer, there};
    return;
  }
  if (hosted_->links.contains(node)) return;
  const auto call = hosted_->calls.find(node);
  const bool is_answer = call != hosted_->calls.end() && call->second == peer;
  // If the process has joined again, only its latest number is valid.
  std::erase_if(hosted_->links, [&](const auto& entry) { return entry.second == peer; });
  for (const auto& [earlier, called] : hosted_->calls)
    if (called == peer && earlier != node) hosted_->to_call.erase(earlier);
  std::erase_if(hosted_->calls, [&](const auto& entry) { return entry.second == peer; });
  hosted_->links[node] = peer;
  site_.link(node, peer, there.name);
  auto& names = hosted_->names;
  names.resize(std::max<std::size_t>(names.size(), node.value() + 1));
  if (names[node.value()].empty()) names[node.value()] = there.name;
  for (const auto& hosted : there.hosted) site_.moved(hosted.actor, node, hosted.launch);
  if (hosted_->step == Step::running) report_link(peer, node::LinkState::State::heard);
  if (!is_answer) reply(peer, here(), hosted_->number);
  linked_if_complete();
}

void Agent::linked_if_complete() {
  if (hosted_->step != Step::linking) return;
  for (const auto& [node, name] : hosted_->to_call)
    if (!hosted_->links.contains(node)) return;
  hosted_->step = Step::linked;
  to_program(node::Linked{});
}

std::string Agent::job_text() const {
  return hosted_ ? concat("hosts ", hosted_->text(), " since ", hosted_->since) : "";
}

std::optional<NodeIndex> Agent::node_of(PeerId peer) const {
  if (hosted_)
    for (const auto& [node, linked] : hosted_->links)
      if (linked == peer) return node;
  return std::nullopt;
}

// ---- the end ----

void Agent::give_up(const std::string& why) {
  to_program(node::Refused{why});
  if (offered_to_ && !leaving_) outcome_ = Error{why};
  end_job(why);
}

void Agent::lose_program(const std::string& why) {
  if (offered_to_ == hosted_->program && !leaving_) {
    outcome_ = Error{why};
    has_lost_program_ = true;
  }
  end_job(why);
}

void Agent::end_job(const std::string& why) {
  site_.end_job(why);
  const HostedJob hosted = std::move(*hosted_);
  hosted_.reset();
  reply(hosted.program, node::Done{}, hosted.number);
  // Messages of this job must not reach the peers' next job.
  for (const auto& [node, peer] : hosted.links) site_.leave(peer);
  for (const auto& [node, peer] : hosted.calls) site_.leave(peer);
  for (const auto& [node, caller] : hosted.called) site_.leave(caller.first);
  site_.say(concat(hosted.step == Step::running ? "ended " : "gave back ", hosted.text(), ": ", why,
                   leaving_ ? "" : "; free"));
  if (leaving_ || offered_to_) finished_ = true;
}

void Agent::leave() {
  leaving_ = true;
  if (!hosted_) {
    finished_ = true;
    return;
  }
  const bool running = hosted_->step == Step::running;
  const Placement& placement = hosted_->placement;
  if (running && placement.has_shard(hosted_->self) && placement.standbys.empty())
    return site_.warn(concat("this node has a shard of ", hosted_->text(),
                             " and ends with it; ending now would lose the job. Press Ctrl-C again "
                             "to end at once, or run jobs with --replicas 2"));
  if (!running) return give_up("this node is shutting down");
  site_.say(concat("leaving ", hosted_->text()));
  hosted_->leave_by = site_.now_ns() + options_.leave_limit.ns;
  to_program(node::Leaving{});
}

void Agent::close() {
  if (hosted_) end_job("this node ends");
}

}  // namespace leeway
