#pragma once
// Simulation: a whole run of a job in virtual time - its actors, world, stragglers and faults, with
// the checkers watching.
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
};

class Simulation {
 public:
  /// The world is that of the job's plan; the usual one if it has none. `audience` hears what the
  /// monitor tells.
  Simulation(std::shared_ptr<const Job> job, std::vector<Audience*> audience,
             SimulationOptions options = {});
  ~Simulation();

  /// Goes on until the run has ended, and calls `look` every now and then. Returns why it does not
  /// end: actors that wait for each other, or one that no run can lose; empty when the run came to
  /// its end, be it a failure that the scheduler tells. Throws Violation, and CheckFailed for a bug
  /// that no checker had to find.
  std::string run(const std::function<void()>& look = {});
  /// Goes on for one event; false when there is none left, or the run has ended. Throws Violation.
  bool step();
  void start();
  /// Why it does not go on; empty while it does. `more`: what the last step() said.
  std::string stuck(bool more) const;
  /// Begins the next life of an actor that has ended.
  void start_again(Address actor) { faults_->start_again(actor); }

  Simulator& host() { return host_; }
  bool ended() const { return ending_.totals.has_value(); }
  const RunTotals& totals() const { return *ending_.totals; }

 private:
  struct Ending final : Audience {
    void ended(const RunTotals& end) override { totals = end; }
    std::optional<RunTotals> totals;
  };
  Simulator::Options simulator_options(SimulationOptions options);
  std::shared_ptr<Role> make_role(Address address, std::uint32_t life) const;

  std::shared_ptr<const Job> job_;
  Ending ending_;
  std::vector<Audience*> audience_;
  std::shared_ptr<Faults> faults_;
  Simulator host_;
};

}  // namespace leeway::sim
