#include "sim/cluster/simulation.hpp"

#include <algorithm>

#include "core/check.hpp"
#include "core/text.hpp"
#include "plan/fault_queries.hpp"
#include "plan/groups.hpp"
#include "sim/chance.hpp"
#include "sim/checkers/catalogue.hpp"
#include "sim/cluster/node.hpp"

namespace leeway::sim {
namespace {

constexpr const char* kProgram = "program:4242";
/// Of virtual time without progress.
constexpr Duration kPatience = seconds(1000);
/// After the last fault, until all workers that can take part do, and until a node that takes
/// missing workers has them. As in a real cluster.
constexpr double kSettledSeconds = 50, kJoinSeconds = 25;
/// From the order to launch a worker to the start of its role. As in a real cluster.
constexpr double kStartSeconds = 1;

}  // namespace

Status check_place(const Plan& plan) {
  if (!has_agents(plan)) {
    const auto needs_agents = [](const char* name) {
      return Error{
          concat("host.simulated.", name, ": needs node agents; give --world agents=3 too")};
    };
    if (!plan.simulated) return {};
    if (!plan.simulated->place.empty()) return needs_agents("place");
    if (plan.simulated->at_least > 0) return needs_agents("at_least");
    if (plan.simulated->faults_from != plan::World::FaultsFrom::start)
      return needs_agents("faults_from");
    return {};
  }
  const auto& world = *plan.simulated;
  if (world.at_least > world.agents)
    return Error{concat("host.simulated.at_least: ", world.at_least, " is more than the ",
                        world.agents, " agents; give at most that many")};
  const auto placement = place_actors(world.agents, plan, world.place);
  if (!placement) return placement.error();
  const auto grouped = with_host_groups(plan, *placement);
  if (!grouped) return grouped.error();
  if (workers_per_group(*grouped) == workers_per_group(plan)) return {};
  return Error{concat("host.simulated.place: ", workers_per_group(*grouped),
                      " workers on the first node, and --aggregate host takes ",
                      workers_per_group(plan), " per node; give a number instead of host")};
}

ClusterSimulation::ClusterSimulation(std::shared_ptr<const Job> job,
                                     std::vector<Audience*> audience, SimulationOptions options)
    : job_(std::move(job)),
      faults_(std::make_shared<ClusterFaults>(job_->faults, static_cast<ClusterView&>(*this))) {
  const auto& world = job_->plan.simulated;
  LW_CHECK(has_agents(job_->plan), "a world with agents");
  parts_ = std::make_unique<ClusterParts>(job_, observers_of(options), options.trace);
  parts_->on_event = std::move(options.on_event);
  const bool from_call = world->faults_from == plan::World::FaultsFrom::call;
  parts_->on_begin = [this, from_call] {
    if (!from_call) faults_->arm();
  };
  for (std::uint32_t number = 1; number <= world->agents; ++number) {
    nodes_.push_back({.number = number});
    nodes_.back().processes.push_back(std::make_unique<SimulatedAgent>(*parts_, name_of(number)));
  }
  audience.push_back(&ending_);
  program_ = make_program(kProgram, std::move(audience), false);
  if (from_call) faults_->arm();
}

std::unique_ptr<SimulatedProgram> ClusterSimulation::make_program(std::string name,
                                                                  std::vector<Audience*> audience,
                                                                  bool competes) {
  const plan::World& world = *job_->plan.simulated;
  std::vector<std::string> names;
  for (std::uint32_t number = 1; number <= world.agents; ++number) names.push_back(name_of(number));
  const auto placement = place_actors(world.agents, job_->plan, world.place);
  LW_CHECK(bool(placement), placement ? std::string() : placement.error().text);
  return std::make_unique<SimulatedProgram>(*parts_, std::move(name), *placement, std::move(names),
                                            std::move(audience), competes);
}

ClusterSimulation::~ClusterSimulation() {
  parts_->launches.close();
}

std::vector<std::shared_ptr<Observer>> ClusterSimulation::observers_of(
    const SimulationOptions& options) {
  std::vector<std::shared_ptr<Observer>> all;
  if (options.checkers)
    for (auto& checker : all_checkers(job_)) all.push_back(std::move(checker));
  all.insert(all.end(), options.observers.begin(), options.observers.end());
  if (faults_->wait_for_iterations()) all.push_back(faults_);
  if (job_->plan.replicas > 1) all.push_back(training_end_);
  return all;
}

std::string ClusterSimulation::name_of(std::uint32_t node) {
  return concat("node", node, ":4242");
}

SimulatedAgent* ClusterSimulation::agent(std::uint32_t number) {
  for (const Node& node : nodes_)
    if (node.number == number) return node.processes.back().get();
  return nullptr;
}

void ClusterSimulation::start_again(std::uint32_t number, bool joins) {
  auto process =
      std::make_unique<SimulatedAgent>(*parts_, name_of(number), joins ? kProgram : std::string());
  for (Node& node : nodes_)
    if (node.number == number) return node.processes.push_back(std::move(process));
  nodes_.push_back({.number = number});
  nodes_.back().processes.push_back(std::move(process));
}

SimulatedProgram& ClusterSimulation::start_competitor(std::uint32_t number) {
  competitors_.push_back(make_program(concat("program", number, ":4242"), {}, true));
  return *competitors_.back();
}

std::vector<std::uint32_t> ClusterSimulation::nodes() const {
  std::vector<std::uint32_t> numbers = {0};
  for (const Node& node : nodes_) numbers.push_back(node.number);
  return numbers;
}

template <class Call>
void ClusterSimulation::each_process(Call call) const {
  call(static_cast<SimulatedProcess&>(*program_));
  for (const Node& node : nodes_)
    for (const auto& process : node.processes) call(static_cast<SimulatedProcess&>(*process));
}

void ClusterSimulation::step() {
  SimulatedProcess* next = nullptr;
  Instant at;
  const auto consider = [&](SimulatedProcess& process) {
    if (!process.part() || process.is_frozen()) return;
    const auto due = process.part()->host().next_at();
    if (!due || (next && *due >= at)) return;
    next = &process;
    at = *due;
  };
  each_process(consider);
  const auto call = parts_->timeline.next_at();
  LW_CHECK(next || call, "processes tick until they end");
  if (next && (!call || at < *call)) {
    parts_->timeline.advance(at);
    next->part()->host().advance(parts_->timeline.now());
    next->part()->host().step();
    return;
  }
  each_process([&](SimulatedProcess& process) {
    if (process.part()) process.part()->host().advance(*call);
  });
  parts_->timeline.run_next();
}

std::string ClusterSimulation::stuck() const {
  const Coordinator& role = program_->role();
  if (role.phase() == Coordinator::Phase::failed) return role.problems().error().text;
  if (program_->has_ended()) return "the program has ended before its run";
  if (faults_->pending() || !program_->part()) return {};
  const Simulator& host = program_->part()->host();
  if (const auto reason = host.end_reason(kMonitor))
    return concat("the monitor ended: ", reason->text);
  bool idle = true;
  each_process([&](SimulatedProcess& process) {
    if (process.part() && !process.is_frozen() && process.part()->host().idle() <= kPatience)
      idle = false;
  });
  if (!idle) return {};
  std::string waits;
  each_process([&](SimulatedProcess& process) {
    if (!process.part()) return;
    const std::string here = process.part()->host().who_waits();
    if (!here.empty()) waits += concat("\n  ", process.name(), ": ", here);
  });
  return concat("all actors wait for each other:", waits);
}

bool ClusterSimulation::is_ended_by_faults() const {
  if (program_->has_ended()) return faults_->has_killed_program();
  const Status problems = program_->role().problems();
  if (problems) return false;
  // Other nodes may report it, or wait for it.
  return std::ranges::any_of(nodes_, [&](const Node& node) {
    return problems.error().text.find(name_of(node.number)) != std::string::npos &&
           faults_->has_disturbed(node.number);
  });
}

std::string ClusterSimulation::occupied_nodes() const {
  std::string names;
  for (const Node& node : nodes_)
    for (const auto& process : node.processes)
      if (!process->has_ended() && !process->is_frozen() && process->is_occupied())
        names += concat(names.empty() ? "" : ", ", process->name());
  return names;
}

void ClusterSimulation::free_nodes() {
  program_->finish();
  // Longer than all limits, one after the other.
  const Instant begun = parts_->timeline.now();
  const Duration limit = scaled(parts_->silence, 100) + seconds(120);
  while (faults_->pending() || !program_->has_ended() || !occupied_nodes().empty()) {
    const Instant quiet_since = std::max(begun, faults_->last_change());
    if (!faults_->pending() && parts_->timeline.now() - quiet_since > limit)
      throw Violation("a job that ends, ends on all nodes", {},
                      program_->has_ended() ? concat("still occupied: ", occupied_nodes())
                                            : std::string("the program waits"));
    step();
  }
}

bool ClusterSimulation::may_have_ended(WorkerId worker) const {
  return std::ranges::any_of(job_->plan.faults, [&](const plan::Fault& fault) {
    return fault.actor == address_of(worker) || std::holds_alternative<plan::Leaves>(fault.kind);
  });
}

void ClusterSimulation::check_workers() const {
  const Instant quiet = faults_->last_change() + parts_->limit(kSettledSeconds);
  if (faults_->pending() || parts_->timeline.now() < quiet || !program_->part()) return;
  const auto violated = [](WorkerId worker, const auto&... seen) {
    throw Violation("every worker that can take part does", {address_of(worker)}, concat(seen...));
  };
  NodeHost& known = program_->part()->node();
  const std::string free = has_joining_node() ? "" : free_node();
  for (std::uint32_t i = 0; i < job_->plan.workers; ++i) {
    const WorkerId worker(i);
    const leeway::NodeIndex place = program_->role().placement().workers[i];
    if (place == kProgramNode || may_have_ended(worker)) continue;
    const SimulatedAgent* const process = process_at(place);
    if (!process) {
      if (!free.empty()) violated(worker, "it is missing, and ", free, " is free");
      continue;
    }
    // A node that has joined soon before the end may not have launched all its workers yet.
    if (parts_->timeline.now() - process->loaded_at() < parts_->limit(kJoinSeconds)) continue;
    const std::uint32_t here = process->part()->node().launch_of(address_of(worker));
    if (here != known.launch_of(address_of(worker)))
      violated(worker, process->name(), " knows launch ", here, " of it, and the program launch ",
               known.launch_of(address_of(worker)));
    // Its role starts soon after the order.
    const bool just_begun =
        here > 0 && parts_->timeline.now() - parts_->launches.begun_at(address_of(worker)) <
                        parts_->limit(kStartSeconds);
    if (here > 0 && !just_begun && !process->part()->host().lives(address_of(worker)))
      violated(worker, "it has ended on ", process->name());
  }
}

void ClusterSimulation::check_standbys() const {
  const Instant now = parts_->timeline.now();
  if (training_end_->has_come) return;  // shards that have finished give no seed
  if (faults_->pending() || now < faults_->last_change() + parts_->limit(kSettledSeconds)) return;
  const Placement& placement = program_->role().placement();
  for (std::uint32_t i = 0; i < placement.standbys.size(); ++i) {
    if (placement.standbys[i] != kNowhere) {
      // The primary finishes its computations before, which may take longer than all limits.
      const Duration seeds = std::max(parts_->limit(kJoinSeconds), seconds(5));
      const bool just_begun = now - parts_->launches.begun_at(standby(i)) < seeds;
      if (!just_begun && !program_->role().is_in_sync(ShardId(i)))
        throw Violation("every shard has a standby if a node can have it", {standby(i)},
                        "it was launched long ago, and does not have the state");
      continue;
    }
    for (const Node& node : nodes_) {
      const SimulatedAgent& process = *node.processes.back();
      const bool is_ready = !process.has_ended() && !process.is_frozen() && process.part() &&
                            process.part()->has_started() && !process.role().is_leaving() &&
                            now - process.loaded_at() > parts_->limit(kJoinSeconds);
      if (is_ready && process.part()->routes().self() != placement.shards[i])
        throw Violation("every shard has a standby if a node can have it", {standby(i)},
                        concat("it is missing, and ", process.name(), " can have it"));
    }
  }
}

const SimulatedAgent* ClusterSimulation::process_at(leeway::NodeIndex place) const {
  for (const Node& node : nodes_) {
    const SimulatedAgent& process = *node.processes.back();
    if (!process.has_ended() && process.part() && process.part()->routes().self() == place)
      return &process;
  }
  return nullptr;
}

bool ClusterSimulation::has_joining_node() const {
  // A node may try again after a fault, but not for ever.
  constexpr int kTries = 4;
  const Instant settled = faults_->last_change() + parts_->limit(kJoinSeconds);
  return std::ranges::any_of(nodes_, [&](const Node& node) {
    const SimulatedAgent& process = *node.processes.back();
    const bool has_begun = process.part() && process.part()->has_started();
    return !process.has_ended() && process.role().is_busy() && !has_begun &&
           parts_->timeline.now() - process.loaded_at() < parts_->limit(kJoinSeconds) &&
           process.jobs_since(settled) <= kTries;
  });
}

std::string ClusterSimulation::free_node() const {
  for (const Node& node : nodes_) {
    const SimulatedAgent& process = *node.processes.back();
    const bool is_called = node.number <= job_->plan.simulated->agents || process.is_occupied();
    if (is_called && !process.has_ended() && !process.is_frozen() && !process.role().is_busy() &&
        !process.role().is_leaving())
      return process.name();
  }
  return {};
}

std::string ClusterSimulation::run(const std::function<void()>& look) {
  constexpr int kSteps = 1000;  // between two calls of look()
  while (!ended()) {
    if (look) look();
    for (int i = 0; i < kSteps && !ended(); ++i) step();
    if (ended()) break;
    if (auto reason = stuck(); !reason.empty()) {
      if (program_->has_ended() || program_->role().phase() == Coordinator::Phase::failed) {
        cut_short_ = is_ended_by_faults();
        const bool is_killed = cut_short_ && program_->has_ended();
        parts_->launches.close();
        program_->give_up();
        free_nodes();
        if (is_killed) return "the program was killed, and its job has ended on all nodes";
      }
      return reason;
    }
  }
  check_workers();
  check_standbys();
  parts_->observers->run_ended(totals());
  parts_->launches.close();
  free_nodes();
  return {};
}

}  // namespace leeway::sim
