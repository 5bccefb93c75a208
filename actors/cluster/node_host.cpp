#include "actors/cluster/node_host.hpp"

#include <algorithm>

#include "actors/scheduler/scheduler.hpp"
#include "actors/shard/replicated_shard.hpp"
#include "actors/worker/participant.hpp"
#include "checkpoint/store.hpp"
#include "core/check.hpp"
#include "core/mutant.hpp"
#include "core/text.hpp"
#include "plan/fault_queries.hpp"

namespace leeway {

NodeHost::NodeHost(std::shared_ptr<const Job> job, std::vector<Audience*> audience, ActorHost& host,
                   NodeHostOptions options)
    : job_(std::move(job)),
      host_(host),
      options_(std::move(options)),
      nodes_(options_.placement.nodes) {
  LW_CHECK(options_.placement.shards.size() == job_->plan.shards &&
               options_.placement.workers.size() == job_->plan.workers &&
               options_.placement.standbys.empty() == (job_->plan.replicas == 1),
           "a placement of another job");
  LW_CHECK(options_.self.value() < options_.placement.nodes, options_.self);
  add_roles(std::move(audience));
}

void NodeHost::add_roles(std::vector<Audience*> audience) {
  const auto& placement = options_.placement;
  std::set<WorkerId> later;
  for (std::uint32_t i = 0; i < job_->plan.workers; ++i) {
    const WorkerId worker(i);
    const Address address = address_of(worker);
    if (placement.workers[i] == kNowhere) later.insert(worker);
    if (!later.contains(worker) && !joins_later(job_->faults, address)) add_role(address);
  }
  for (std::uint32_t i = 0; i < job_->plan.shards; ++i) add_role(address_of(ShardId(i)));
  for (std::uint32_t i = 0; i < placement.standbys.size(); ++i)
    if (placement.standbys[i] != kNowhere) add_role(standby_of(ShardId(i)));
  if (job_->resumed) job_->resumed->release_tensors();
  if (options_.self != kProgramNode) return;
  host_.add(kMonitor, std::make_shared<Monitor>(job_, std::move(audience)));
  host_.add(kScheduler, std::make_shared<Scheduler>(job_, later));
}

void NodeHost::add_role(Address actor) {
  launches_[actor] = 1;
  if (!is_here(actor)) return;
  here_[actor] = 1;
  host_.add(actor, make_role(actor, 1));
}

std::shared_ptr<Role> NodeHost::make_role(Address actor, std::uint32_t launch) const {
  if (actor.kind == RoleKind::worker) return make_participant(job_, WorkerId(actor.index), launch);
  const ShardId shard(actor.index);
  return actor.kind == RoleKind::shard ? make_shard(job_, shard)
                                       : make_standby(job_, shard, launch);
}

void NodeHost::start() {
  host_.start();
  // Messages that arrive now must not overtake earlier ones.
  for (std::vector<Letter> early; take_early(early); early.clear())
    for (auto& letter : early) host_.deliver(letter.from, letter.to, std::move(letter.message));
}

bool NodeHost::take_early(std::vector<Letter>& early) {
  std::lock_guard lock(mutex_);
  early.swap(early_);
  started_ = early.empty();
  return !started_;
}

// ---- messages ----

void NodeHost::send_out(Address from, Address to, Message message) {
  NodeIndex node;
  {
    std::shared_lock lock(mutex_);
    node = options_.placement.node_of(to);
    // An actor of this node has not joined yet.
    if (node == kNowhere || node == options_.self ||
        nodes_[node.value()].state == Node::State::gone)
      return;
  }
  options_.send(node, from, to, std::move(message));
}

void NodeHost::deliver(NodeIndex from_node, Address from, Address to, Message message) {
  {
    std::shared_lock lock(mutex_);
    const bool known = from_node.value() < nodes_.size() && from_node != options_.self &&
                       nodes_[from_node.value()].state != Node::State::gone;
    const bool theirs = from == kHost || options_.placement.node_of(from) == from_node;
    if (!known || !theirs || !is_here(to)) {
      ++refused_;
      return;
    }
    if (started_) {
      lock.unlock();
      return host_.deliver(from, to, std::move(message));
    }
  }
  {
    std::lock_guard lock(mutex_);
    if (!started_) return early_.push_back({from, to, std::move(message)});
  }
  host_.deliver(from, to, std::move(message));
}

// ---- actors that have ended ----

std::string NodeHost::name_of(NodeIndex node) const {
  return node.value() < options_.names.size() ? concat("node ", options_.names[node.value()])
                                              : concat("node ", node);
}

template <class Concerns>
std::vector<NodeHost::DownReport> NodeHost::down_reports(Concerns concerns,
                                                         const EndReason& reason) const {
  std::vector<DownReport> reports;
  for (const auto& [actor, watchers] : watchers_) {
    if (!concerns(actor)) continue;
    for (const Address watcher : watchers) reports.push_back({watcher, actor, reason});
  }
  return reports;
}

void NodeHost::report(const std::vector<DownReport>& reports) {
  for (const auto& one : reports) host_.report_down(one.watcher, one.actor, one.reason);
}

void NodeHost::watch_out(Address watcher, Address watched) {
  std::vector<DownReport> reports;
  Address actor = watched;
  bool is_local = false;
  {
    std::lock_guard lock(mutex_);
    // A standby without a place has taken over: it has the address of its shard.
    const bool took_over =
        watched.kind == RoleKind::standby && options_.placement.node_of(watched) == kNowhere;
    if (took_over) actor.kind = RoleKind::shard;
    if (is_here(actor)) {
      // A worker that is placed here but has not begun is watched when it has joined.
      if (!took_over) return;
      is_local = true;
    } else {
      watchers_[watched].insert(watcher);
      const NodeIndex node = options_.placement.node_of(actor);
      const auto ended = ended_.find(actor);
      if (ended != ended_.end()) {
        reports.push_back({watcher, watched, ended->second});
      } else if (node != kNowhere) {
        const Node& there = nodes_[node.value()];
        const bool is_lost = took_over && there.state != Node::State::up;
        if (is_lost || there.state == Node::State::gone)
          reports.push_back({watcher, watched, there.reason});
      }
    }
  }
  if (is_local && !host_.lives(actor)) reports.push_back({watcher, watched, "it has ended"});
  report(reports);
}

void NodeHost::on_end(Address actor, const EndReason& reason) {
  std::uint32_t launch = 1;
  {
    std::shared_lock lock(mutex_);
    if (const auto found = here_.find(actor); found != here_.end()) launch = found->second;
  }
  // The host holds a lock here; other nodes hold theirs when they call this host.
  if (options_.on_end)
    options_.later([this, actor, launch, reason] { options_.on_end(actor, launch, reason); });
}

void NodeHost::ended(Address actor, std::uint32_t launch, const EndReason& reason) {
  std::vector<DownReport> reports;
  {
    std::lock_guard lock(mutex_);
    if (is_here(actor) || options_.placement.node_of(actor) == kNowhere) return;
    auto& known = launches_[actor];
    if (launch < known) return;
    if (launch > known) ended_.erase(actor);
    known = launch;
    if (!ended_.emplace(actor, reason).second) return;  // known before
    reports = down_reports([&](Address one) { return one == actor; }, reason);
  }
  report(reports);
}

// ---- connections ----

std::vector<NodeHost::DownReport> NodeHost::down_reports_of(NodeIndex node,
                                                            const EndReason& reason) const {
  return down_reports(
      [&](Address actor) {
        return options_.placement.node_of(actor) == node && !ended_.contains(actor);
      },
      reason);
}

void NodeHost::silent(NodeIndex node) {
  std::vector<DownReport> reports;
  {
    std::lock_guard lock(mutex_);
    auto& there = nodes_.at(node.value());
    if (there.state != Node::State::up) return;
    there.state = Node::State::silent;
    there.reason = {
        EndReason::Kind::unreachable,
        concat("no sign of life of ", name_of(node), " for ", options_.silence.seconds(), " s")};
    reports = down_reports_of(node, there.reason);
  }
  report(reports);
}

void NodeHost::gone(NodeIndex node, const std::string& reason) {
  std::vector<DownReport> reports;
  {
    std::lock_guard lock(mutex_);
    auto& there = nodes_.at(node.value());
    if (there.state == Node::State::gone) return;
    there.state = Node::State::gone;
    there.reason = {EndReason::Kind::unreachable, concat(name_of(node), " is gone: ", reason)};
    if (!planted(Mutant::loss_of_node_not_reported)) reports = down_reports_of(node, there.reason);
  }
  report(reports);
}

void NodeHost::heard(NodeIndex node) {
  std::lock_guard lock(mutex_);
  auto& there = nodes_.at(node.value());
  if (there.state == Node::State::silent) there.state = Node::State::up;
}

// ---- launches ----

bool NodeHost::place(Address actor, NodeIndex node, std::uint32_t launch) {
  std::lock_guard lock(mutex_);
  NodeIndex* const place = options_.placement.find(actor);
  LW_CHECK(place && node.value() < nodes_.size(), actor, node);
  auto& known = launches_[actor];
  if (launch <= known) return false;
  known = launch;
  *place = node;
  ended_.erase(actor);
  if (actor.kind != RoleKind::shard) return true;
  // The next standby may be known already.
  const Address standby = standby_of(ShardId(actor.index));
  NodeIndex* const standby_place = options_.placement.find(standby);
  if (standby_place && launches_[standby] < launch) *standby_place = kNowhere;
  return true;
}

void NodeHost::launch(Address actor, std::uint32_t launch) {
  if (!place(actor, options_.self, launch)) return;
  // All nodes must know before the actor sends its first message.
  if (options_.on_launch) options_.on_launch(actor, launch);
  options_.later([this, actor, launch] {
    host_.forget(actor, "it is launched again");
    {
      std::lock_guard lock(mutex_);
      if (!is_here(actor) || launches_.at(actor) != launch) return;
      here_[actor] = launch;
    }
    host_.restart(actor, make_role(actor, launch));
  });
}

void NodeHost::on_take_over(ShardId shard) {
  const Address actor = address_of(shard);
  std::uint32_t launch = 0;
  {
    std::lock_guard lock(mutex_);
    const auto standby = here_.extract(standby_of(shard));
    LW_CHECK(!standby.empty(), shard);
    launch = standby.mapped() + 1;
    here_[actor] = launch;
  }
  place(actor, options_.self, launch);
  if (options_.on_launch && !planted(Mutant::takeover_not_announced))
    options_.on_launch(actor, launch);
  options_.later([this, actor] { host_.report_link(actor); });
}

void NodeHost::moved(Address actor, NodeIndex node, std::uint32_t launch) {
  if (!place(actor, node, launch)) return;
  options_.later([this, actor, launch] {
    if (launch_of(actor) != launch) return;
    host_.forget(actor, "it is launched on another node");
    // Messages to the earlier actor may be lost.
    if (actor.kind == RoleKind::shard) host_.report_link(actor);
  });
}

void NodeHost::end_launch(Address actor, std::uint32_t launch, const EndReason& reason) {
  options_.later([this, actor, launch, reason] {
    {
      std::shared_lock lock(mutex_);
      const auto known = launches_.find(actor);
      if (!is_here(actor) || known == launches_.end() || known->second != launch) return;
    }
    host_.kill(actor, reason);
  });
}

std::vector<NodeHost::HostedActor> NodeHost::hosted() const {
  std::vector<HostedActor> actors;
  std::shared_lock lock(mutex_);
  for (const auto& [actor, launch] : launches_)
    if (launch > 0 && is_here(actor)) actors.push_back({actor, launch});
  return actors;
}

std::vector<Address> NodeHost::replicas() const {
  std::vector<Address> actors;
  for (const auto& [actor, launch] : hosted())
    if (actor.kind == RoleKind::shard || (actor.kind == RoleKind::standby && host_.lives(actor)))
      actors.push_back(actor);
  return actors;
}

void NodeHost::add_node(NodeIndex node, const std::string& name) {
  std::lock_guard lock(mutex_);
  // Messages were lost with the earlier connection.
  if (node.value() < nodes_.size() && nodes_[node.value()].state == Node::State::gone)
    for (const auto& [actor, launch] : launches_)
      if (actor.kind != RoleKind::worker && options_.placement.node_of(actor) == node)
        options_.later([this, replica = actor] { host_.report_link(replica); });
  const std::size_t count = std::max<std::size_t>(nodes_.size(), node.value() + std::size_t{1});
  nodes_.resize(count);
  options_.names.resize(count);
  options_.names[node.value()] = name;
  nodes_[node.value()] = {};
}

NodeIndex NodeHost::node_of(Address actor) const {
  std::shared_lock lock(mutex_);
  return options_.placement.node_of(actor);
}

std::uint32_t NodeHost::launch_of(Address actor) const {
  std::shared_lock lock(mutex_);
  const auto found = launches_.find(actor);
  return found == launches_.end() ? 0 : found->second;
}

}  // namespace leeway
