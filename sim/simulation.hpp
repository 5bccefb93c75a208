#pragma once
// Simulation: a run of a job in virtual time, with its actors, world, stragglers and faults, under
// all checkers.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/job.hpp"
#include "actors/monitor/monitor.hpp"
#include "sim/faults/faults.hpp"
#include "sim/simulator.hpp"

namespace leeway::sim {

struct SimulationOptions {
  bool checkers = true;  // whether to watch for violations of the protocol
  Trace::Options trace;
  std::function<void(Address, Instant, const Event&)> on_event;
  std::vector<std::shared_ptr<Observer>> observers;  // after the checkers
  /// As in Simulator::Options.
  std::function<bool(Address from, Address to, const Message&)> ends_after = {};
};

class Simulation {
 public:
  /// Uses the world of the job's plan, or the default world. The monitor reports to `audience`.
  Simulation(std::shared_ptr<const Job> job, std::vector<Audience*> audience,
             SimulationOptions options = {});
  ~Simulation();

  /// Continues until the run ends, and calls `look` regularly. Returns an empty text at the end,
  /// also if the scheduler reports a failure. Otherwise returns why the run is stuck: a deadlock,
  /// or a dead monitor. Throws Violation from a checker, and CheckFailed from a role.
  std::string run(const std::function<void()>& look = {});
  /// Handles one event. False if no event is left or the run has ended. Throws like run().
  bool step();
  void start();
  /// Why the run is stuck; empty if it is not. `more` is the result of the last step().
  std::string stuck(bool more) const;
  /// Restarts an actor that has ended.
  void start_again(Address actor) { faults_->start_again(actor); }

  Simulator& host() { return host_; }
  const Trace& trace() const { return host_.trace(); }
  Instant now() const { return host_.now(); }
  bool ended() const { return ending_.totals.has_value(); }
  const RunTotals& totals() const { return *ending_.totals; }

 private:
  struct Ending final : Audience {
    void ended(const RunTotals& end) override { totals = end; }
    std::optional<RunTotals> totals;
  };
  Simulator::Options simulator_options(SimulationOptions options);
  std::shared_ptr<Role> make_role(Address address, std::uint32_t launch) const;

  std::shared_ptr<const Job> job_;
  Ending ending_;
  std::vector<Audience*> audience_;
  std::shared_ptr<Faults> faults_;
  Simulator host_;
};

}  // namespace leeway::sim
