#include "cluster/node_host.hpp"

#include <algorithm>

#include "actors/scheduler/scheduler.hpp"
#include "actors/shard/shard.hpp"
#include "actors/worker/participant.hpp"
#include "checkpoint/store.hpp"
#include "core/check.hpp"
#include "core/text.hpp"
#include "plan/fault_queries.hpp"

namespace leeway {
namespace {

std::vector<LocalFaults::Planned> faults_on(const Job& job, const NodeHostOptions& options) {
  std::vector<LocalFaults::Planned> here;
  for (std::size_t number = 0; number < job.faults.size(); ++number)
    if (const plan::Fault& fault = job.faults[number];
        options.placement.node_of(fault.actor) == options.self)
      here.push_back({number, fault});
  return here;
}

}  // namespace

NodeHost::NodeHost(std::shared_ptr<const Job> job, std::vector<Audience*> audience,
                   NodeHostOptions options)
    : job_(std::move(job)), options_(std::move(options)), nodes_(options_.placement.nodes) {
  LW_CHECK(options_.placement.shards.size() == job_->plan.shards &&
               options_.placement.workers.size() == job_->plan.workers,
           "a placement of another job");
  LW_CHECK(options_.self.value() < options_.placement.nodes, options_.self);
  const auto make_role = [this](Address worker, std::uint32_t) {
    return node_of(worker) == options_.self ? next_life(WorkerId(worker.index)) : nullptr;
  };
  faults_.emplace(faults_on(*job_, options_), job_->disturbances, orders_, make_role);
  host_ = std::make_unique<LocalHost>(host_options());
  add_roles(std::move(audience));
}

NodeHost::~NodeHost() {
  orders_.stop();
}

LocalHost::Options NodeHost::host_options() {
  return {.seed = job_->plan.seed,
          .pool_threads = options_.pool_threads,
          .stragglers = job_->stragglers,
          .first_iterations = job_->first_iterations(),
          .disturbances = job_->disturbances,
          .on_event =
              [this](Address actor, Instant at, const Event& event) {
                if (options_.on_event) options_.on_event(actor, at, event);
                faults_->on_event(actor, event);
              },
          .on_message = options_.on_message,
          .send_out = [this](Address from, Address to,
                             Message message) { send_out(from, to, std::move(message)); },
          .watch_out = [this](Address watcher, Address watched) { watch_out(watcher, watched); },
          .on_end = [this](Address actor, const EndReason& reason) { note_end(actor, reason); }};
}

void NodeHost::add_roles(std::vector<Audience*> audience) {
  const auto& placement = options_.placement;
  std::set<WorkerId> later;
  for (std::uint32_t i = 0; i < job_->plan.workers; ++i) {
    const WorkerId worker(i);
    const Address address = address_of(worker);
    if (placement.workers[i] == kNowhere) later.insert(worker);
    const bool there = !later.contains(worker) && !joins_later(job_->faults, address);
    lives_[worker] = there ? 1 : 0;
    if (!there || !is_here(address)) continue;
    here_[worker] = 1;
    host_->add(address, make_participant(job_, worker));
  }
  for (std::uint32_t i = 0; i < job_->plan.shards; ++i)
    if (const Address address = address_of(ShardId(i)); is_here(address))
      host_->add(address, std::make_shared<Shard>(job_, ShardId(i)));
  if (job_->resumed) job_->resumed->release_tensors();
  if (options_.self != kProgramNode) return;
  host_->add(kMonitor, std::make_shared<Monitor>(job_, std::move(audience)));
  host_->add(kScheduler, std::make_shared<Scheduler>(job_, later));
}

void NodeHost::start() {
  host_->start();
  // Messages that arrive now must not overtake earlier ones.
  for (std::vector<Letter> early; take_early(early); early.clear())
    for (auto& letter : early) host_->deliver(letter.from, letter.to, std::move(letter.message));
  faults_->start(*host_);
  orders_.begin();
}

bool NodeHost::take_early(std::vector<Letter>& early) {
  std::lock_guard lock(mutex_);
  early.swap(early_);
  started_ = early.empty();
  return !started_;
}

// ---- messages ----

void NodeHost::send(Address to, Message message) {
  host_->send(to, std::move(message));
}

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
      return host_->deliver(from, to, std::move(message));
    }
  }
  {
    std::lock_guard lock(mutex_);
    if (!started_) return early_.push_back({from, to, std::move(message)});
  }
  host_->deliver(from, to, std::move(message));
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
  for (const auto& one : reports) host_->report_down(one.watcher, one.actor, one.reason);
}

void NodeHost::watch_out(Address watcher, Address watched) {
  std::vector<DownReport> reports;
  {
    std::lock_guard lock(mutex_);
    if (is_here(watched)) return;  // not yet; it will be watched when it has joined
    watchers_[watched].insert(watcher);
    const NodeIndex node = options_.placement.node_of(watched);
    const auto ended = ended_.find(watched);
    if (ended != ended_.end()) {
      reports.push_back({watcher, watched, ended->second});
    } else if (node != kNowhere && nodes_[node.value()].state == Node::State::gone) {
      reports.push_back({watcher, watched, nodes_[node.value()].reason});
    }
  }
  report(reports);
}

void NodeHost::note_end(Address actor, const EndReason& reason) {
  std::uint32_t life = 1;
  {
    std::lock_guard lock(mutex_);
    if (actor.kind == RoleKind::worker) life = here_[WorkerId(actor.index)];
    ended_here_[actor] = {life, reason};
  }
  // The host holds a lock here; other nodes hold theirs when they call this host.
  if (options_.on_end)
    orders_.after({}, [this, actor, life, reason] { options_.on_end(actor, life, reason); });
}

void NodeHost::ended(Address actor, std::uint32_t life, const EndReason& reason) {
  std::vector<DownReport> reports;
  {
    std::lock_guard lock(mutex_);
    if (is_here(actor) || options_.placement.node_of(actor) == kNowhere) return;
    if (actor.kind == RoleKind::worker) {
      auto& known = lives_[WorkerId(actor.index)];
      if (life < known) return;
      if (life > known) ended_.erase(actor);
      known = life;
    }
    if (!ended_.emplace(actor, reason).second) return;  // known before
    reports = down_reports([&](Address one) { return one == actor; }, reason);
  }
  report(reports);
}

// ---- connections ----

void NodeHost::silent(NodeIndex node) {
  std::vector<DownReport> reports;
  {
    std::lock_guard lock(mutex_);
    auto& there = nodes_.at(node.value());
    if (there.state != Node::State::up) return;
    there.state = Node::State::silent;
    begin_absence(node);
    reports = down_reports(
        [&](Address one) {
          return options_.placement.node_of(one) == node && !ended_.contains(one);
        },
        {EndReason::Kind::unreachable,
         concat("no sign of life of ", name_of(node), " for ", options_.silence.seconds(), " s")});
  }
  report(reports);
}

void NodeHost::gone(NodeIndex node, const std::string& reason) {
  std::vector<DownReport> reports;
  {
    std::lock_guard lock(mutex_);
    auto& there = nodes_.at(node.value());
    if (there.state == Node::State::gone) return;
    if (there.state == Node::State::up) begin_absence(node);
    there.state = Node::State::gone;
    there.reason = {EndReason::Kind::unreachable, concat(name_of(node), " is gone: ", reason)};
    orders_.after({}, [this] { go_on_waiting(); });  // its workers are missed no more
    reports = down_reports(
        [&](Address one) {
          return options_.placement.node_of(one) == node && !ended_.contains(one);
        },
        there.reason);
  }
  report(reports);
}

void NodeHost::heard(NodeIndex node) {
  std::lock_guard lock(mutex_);
  auto& there = nodes_.at(node.value());
  if (there.state != Node::State::silent) return;
  there.state = Node::State::up;
  there.absence = 0;
  orders_.after({}, [this] { go_on_waiting(); });
}

// ---- workers that would wait for ever ----

std::optional<Address> NodeHost::missed_at(NodeIndex node, WorkerId worker) const {
  const auto state = nodes_[node.value()].state;
  if (state == Node::State::up) return std::nullopt;
  const auto& shards = options_.placement.shards;
  for (std::uint32_t i = 0; i < shards.size(); ++i)
    if (shards[i] == node) return address_of(ShardId(i));
  // Workers of a node that is gone continue on another node or never.
  if (state == Node::State::gone) return std::nullopt;
  for (const WorkerId other : job_->stages->neighbours(worker))
    if (options_.placement.node_of(address_of(other)) == node) return address_of(other);
  return std::nullopt;
}

void NodeHost::begin_absence(NodeIndex node) {
  const std::uint64_t absence = nodes_[node.value()].absence = ++absences_;
  orders_.after(options_.patience, [this, node, absence] { give_up_waiting(node, absence); });
}

void NodeHost::give_up_waiting(NodeIndex node, std::uint64_t absence) {
  std::map<WorkerId, std::string> workers;  // and why they are ended
  {
    std::lock_guard lock(mutex_);
    if (nodes_[node.value()].absence != absence) return;
    // Without the scheduler no worker can come back.
    if (nodes_[kProgramNode.value()].state != Node::State::up) {
      orders_.after(options_.patience, [this, node, absence] { give_up_waiting(node, absence); });
      return;
    }
    for (const auto& [worker, life] : here_) {
      if (!is_here(address_of(worker))) continue;
      const auto missed = missed_at(node, worker);
      if (!missed) continue;
      workers[worker] = concat(*missed, " on ", name_of(node), " has not been heard for ",
                               (options_.silence + options_.patience).seconds(), " s");
      waiting_.insert(worker);
    }
  }
  for (const auto& [worker, reason] : workers)
    if (host_->lives(address_of(worker))) {
      host_->kill(address_of(worker), reason);
    } else {
      std::lock_guard lock(mutex_);
      waiting_.erase(worker);
    }
}

void NodeHost::go_on_waiting() {
  std::set<WorkerId> workers;
  {
    std::lock_guard lock(mutex_);
    const auto misses_an_actor = [&](WorkerId worker) {
      for (std::uint32_t node = 0; node < nodes_.size(); ++node)
        if (missed_at(NodeIndex(node), worker)) return true;
      return false;
    };
    for (const WorkerId worker : waiting_)
      if (!misses_an_actor(worker)) workers.insert(worker);
    for (const WorkerId worker : workers) waiting_.erase(worker);
  }
  for (const WorkerId worker : workers) begin_life(worker);
}

// ---- lives ----

std::shared_ptr<Role> NodeHost::next_life(WorkerId worker) {
  std::uint32_t life = 0;
  {
    std::lock_guard lock(mutex_);
    life = here_[worker] = ++lives_[worker];
    ended_here_.erase(address_of(worker));
  }
  if (options_.on_life) options_.on_life(worker, life);
  return make_participant(job_, worker, life);
}

void NodeHost::begin_life(WorkerId worker) {
  const Address address = address_of(worker);
  if (node_of(address) != options_.self || host_->lives(address)) return;
  host_->restart(address, next_life(worker));
}

void NodeHost::moved(WorkerId worker, NodeIndex node, std::uint32_t life) {
  const Address address = address_of(worker);
  std::lock_guard lock(mutex_);
  LW_CHECK(worker.value() < options_.placement.workers.size() && node.value() < nodes_.size(),
           worker, node);
  auto& there = options_.placement.workers[worker.value()];
  if (life < lives_[worker] || (life == lives_[worker] && there == node)) return;  // known before
  there = node;
  lives_[worker] = life;
  ended_.erase(address);
  waiting_.erase(worker);
  const bool here = node == options_.self;
  orders_.after({}, [this, worker, address, life, here] {
    host_->forget(address, "its next life has begun");
    {
      std::lock_guard later(mutex_);
      ended_here_.erase(address);
      if (!here || lives_[worker] != life) return;
      here_[worker] = life;
    }
    host_->restart(address, make_participant(job_, worker, life));
  });
  orders_.after({}, [this] { go_on_waiting(); });  // it has left its old node
}

void NodeHost::add_node(NodeIndex node, const std::string& name) {
  std::lock_guard lock(mutex_);
  const std::size_t count = std::max<std::size_t>(nodes_.size(), node.value() + std::size_t{1});
  nodes_.resize(count);
  options_.names.resize(count);
  options_.names[node.value()] = name;
}

NodeIndex NodeHost::node_of(Address actor) const {
  std::shared_lock lock(mutex_);
  return options_.placement.node_of(actor);
}

std::uint32_t NodeHost::life_of(WorkerId worker) const {
  std::shared_lock lock(mutex_);
  const auto found = lives_.find(worker);
  return found == lives_.end() ? 0 : found->second;
}

}  // namespace leeway
