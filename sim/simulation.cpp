#include "sim/simulation.hpp"

#include "actors/scheduler/scheduler.hpp"
#include "actors/shard/replicated_shard.hpp"
#include "actors/worker/participant.hpp"
#include "core/text.hpp"
#include "plan/fault_queries.hpp"
#include "sim/checkers/catalogue.hpp"

namespace leeway::sim {

Simulation::Simulation(std::shared_ptr<const Job> job, std::vector<Audience*> audience,
                       SimulationOptions options)
    : job_(std::move(job)),
      audience_(std::move(audience)),
      faults_(std::make_shared<Faults>(
          job_->faults, job_->disturbances,
          [this](Address address, std::uint32_t launch) { return make_role(address, launch); })),
      host_(simulator_options(std::move(options))) {
  audience_.push_back(&ending_);
  const auto add = [&](Address address) {
    host_.add(address, joins_later(job_->faults, address) ? nullptr : make_role(address, 1));
  };
  add(kMonitor);
  add(kScheduler);
  for (std::uint32_t i = 0; i < job_->plan.shards; ++i) add(address_of(ShardId(i)));
  for (std::uint32_t i = 0; i < job_->plan.shards && job_->plan.replicas > 1; ++i)
    add(standby_of(ShardId(i)));
  for (std::uint32_t i = 0; i < job_->plan.workers; ++i) add(address_of(WorkerId(i)));
  faults_->arm(host_);
}

Simulation::~Simulation() = default;

Simulator::Options Simulation::simulator_options(SimulationOptions options) {
  Simulator::Options out{.seed = job_->plan.seed,
                         .world = job_->plan.simulated ? World(*job_->plan.simulated) : World(),
                         .stragglers = job_->stragglers,
                         .first_iterations = job_->first_iterations(),
                         .disturbances = job_->disturbances,
                         .trace = options.trace,
                         .on_event = std::move(options.on_event),
                         .ends_after = std::move(options.ends_after)};
  if (options.checkers)
    for (auto& checker : all_checkers(job_)) out.observers.push_back(std::move(checker));
  for (auto& observer : options.observers) out.observers.push_back(std::move(observer));
  if (faults_->wait_for_iterations()) out.observers.push_back(faults_);
  return out;
}

std::shared_ptr<Role> Simulation::make_role(Address address, std::uint32_t launch) const {
  switch (address.kind) {
    case RoleKind::monitor:
      return std::make_shared<Monitor>(job_, audience_);
    case RoleKind::scheduler:
      return std::make_shared<Scheduler>(job_);
    case RoleKind::shard:
      return make_shard(job_, ShardId(address.index));
    case RoleKind::standby:
      return make_standby(job_, ShardId(address.index), launch);
    default:
      return make_participant(job_, WorkerId(address.index), launch);
  }
}

void Simulation::start() {
  host_.start();
}

bool Simulation::step() {
  if (ended() || !host_.step()) return false;
  if (ended()) host_.conclude(totals());
  return !ended();
}

std::string Simulation::stuck(bool more) const {
  constexpr Duration kPatience = seconds(1000);  // virtual
  if (const auto reason = host_.end_reason(kMonitor))
    return concat("the monitor ended: ", reason->text);
  if (more && host_.idle() <= kPatience) return {};
  return concat("all actors wait for each other: ", host_.who_waits());
}

std::string Simulation::run(const std::function<void()>& look) {
  constexpr int kSteps = 1000;  // between two calls of look()
  start();
  while (!ended()) {
    if (look) look();
    bool more = true;
    for (int i = 0; i < kSteps && more; ++i) more = step();
    if (ended()) break;
    if (auto reason = stuck(more); !reason.empty()) return reason;
  }
  return {};
}

}  // namespace leeway::sim
