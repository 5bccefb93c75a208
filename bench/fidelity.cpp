// The accuracy of the simulator's predictions for this machine: the same plans on threads and in a
// calibrated world, interleaved. MLP 784-512-256-10, batch 64, momentum SGD, two shards. Compares
// samples per second, parked pulls, and the share of time that each worker waits for weights.
//
//   fidelity [--world world.toml] [--rounds 7] [--iterations 3000] [--plans ssp3,bsp]
//
// Without a world, calibrates before each round, because the load of other programs changes. Needs
// an otherwise idle machine.
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>
#include <vector>

#include "core/text.hpp"
#include "leeway.hpp"
#include "models/datasets/load.hpp"
#include "runtime/tools/calibrate.hpp"
#include "runtime/tools/metered_role.hpp"
#include "sim/world.hpp"

namespace {

using namespace leeway;

struct Case {
  std::string key, name;
  Plan plan;
};

Plan base_plan(std::uint32_t workers, plan::Consistency consistency, std::uint64_t iterations) {
  Scenario scenario("fidelity", "");
  scenario.data(plan::CustomData{"fidelity"})
      .model({linear(512), relu(), linear(256), relu(), linear(10)})
      .optimizer(momentum(0.01, 0.9))
      .consistency(consistency)
      .workers(workers)
      .shards(2)
      .batch(64)
      .epochs(0)
      .iterations(iterations)
      .evaluate_every(0);
  return scenario.plan();
}

std::vector<Case> cases(std::uint64_t iterations) {
  const auto with = [](Plan plan, plan::Straggler straggler) {
    plan.stragglers = {straggler};
    return plan;
  };
  const auto plan = [&](std::uint32_t workers, plan::Consistency consistency) {
    return base_plan(workers, consistency, iterations);
  };
  return {
      {"ssp3", "ssp(3), worker 1 takes 4x", with(plan(2, ssp(3)), slow(1, 4))},
      {"bsp", "bsp, worker 1 takes 4x", with(plan(2, bsp()), slow(1, 4))},
      {"bursts", "ssp(1), worker 1 takes 4x in bursts",
       with(plan(2, ssp(1)), slow_in_bursts(1, 4, 0.2, 20))},
      {"asp", "asp", plan(2, asp())},
      {"even", "bsp, even", plan(2, bsp())},
      {"four", "ssp(1), 4 workers", plan(4, ssp(1))},
  };
}

template <class T>
T must(Expected<T> value) {
  if (value) return std::move(*value);
  std::fprintf(stderr, "fidelity: %s\n", value.error().text.c_str());
  std::exit(2);
}

/// Returns samples per second, parked pulls per 100 iterations, and the percentage of time that
/// each worker waited.
std::vector<double> run_plan(const Plan& plan) {
  const Result result = run(plan, {.quiet = true});
  if (!result.ok()) {
    std::fprintf(stderr, "fidelity: %s\n", result.error.c_str());
    std::exit(1);
  }
  std::vector<double> figures{
      result.samples_per_second,
      100 * static_cast<double>(result.parked_pulls) / static_cast<double>(result.iterations)};
  for (const auto& worker : result.totals.workers)
    figures.push_back(100 * worker.wait.seconds() /
                      std::max((worker.wait + worker.compute).seconds(), 1e-9));
  return figures;
}

/// CPU seconds of all processes since the machine was started.
double machine_seconds() {
  std::ifstream stat("/proc/stat");
  std::string name;
  double user = 0, nice = 0, system = 0, idle = 0, io = 0, irq = 0, soft_irq = 0, stolen = 0;
  stat >> name >> user >> nice >> system >> idle >> io >> irq >> soft_irq >> stolen;
  return (user + nice + system + irq + soft_irq + stolen) /
         static_cast<double>(sysconf(_SC_CLK_TCK));
}

/// Runs the plan. `other_load` becomes the number of cores that other programs used meanwhile.
std::vector<double> measure(const Plan& plan, double& other_load) {
  const auto began = std::chrono::steady_clock::now();
  const double busy = machine_seconds(), own = process_seconds();
  auto figures = run_plan(plan);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  other_load = std::max(machine_seconds() - busy - (process_seconds() - own), 0.0) / took.count();
  return figures;
}

struct Spread {
  double median, least, most;
};

Spread spread(const std::vector<std::vector<double>>& runs, std::size_t figure) {
  std::vector<double> values;
  for (const auto& run : runs) values.push_back(run[figure]);
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values.back()};
}

struct Row {
  Case of;
  std::vector<std::vector<double>> measured, simulated;
};

void print(const Row& row) {
  std::printf("\n%s\n", row.of.name.c_str());
  for (std::size_t figure = 0; figure < row.measured.front().size(); ++figure) {
    const Spread real = spread(row.measured, figure), simulated = spread(row.simulated, figure);
    const std::string name = figure == 0   ? "samples/s"
                             : figure == 1 ? "parked pulls per 100 iterations"
                                           : "worker " + std::to_string(figure - 2) + " waits, %";
    std::printf("  %-32s %9.1f (%.1f to %.1f)   %9.1f (%.1f to %.1f)   ", name.c_str(), real.median,
                real.least, real.most, simulated.median, simulated.least, simulated.most);
    if (figure < 2)
      std::printf("%+.1f %%\n", 100 * (simulated.median / std::max(real.median, 1e-9) - 1));
    else
      std::printf("%+.1f points\n", simulated.median - real.median);
  }
}

plan::World world_of(const std::string& file, const Plan& plan, const TrainTest& data) {
  if (!file.empty()) return must(sim::parse_world(concat("@", file)));
  return must(measure_world(plan, data, [](const std::string& what) {
    std::fprintf(stderr, "measuring: %s\n", what.c_str());
  }));
}

}  // namespace

constexpr int kMaxAttempts = 3;  // to run a plan undisturbed

int main(int argc, char** argv) {
  std::string file, wanted;
  int rounds = 7;
  std::uint64_t iterations = 3000;
  CLI::App app("Compares the simulator's predictions with runs on this machine.");
  app.add_option("--world", file, "World file of `leeway calibrate`, with optional settings");
  app.add_option("--rounds", rounds, "Interleaved rounds")->check(CLI::Range(1, 1000));
  app.add_option("--iterations", iterations, "Iterations of all workers together");
  double quiet = 0.1;
  app.add_option("--quiet", quiet,
                 "Repeat a run if other programs used more than this share of a core");
  app.add_option("--plans", wanted, "Comma-separated: ssp3, bsp, bursts, asp, even, four");
  CLI11_PARSE(app, argc, argv);
  TrainTest data = must(load_data(clusters(10, 784, 10000), 1));
  register_data("fidelity", [&](std::uint64_t) { return Expected<TrainTest>(data); });
  std::vector<Row> rows;
  for (auto& it : cases(iterations))
    if (wanted.empty() || ("," + wanted + ",").find("," + it.key + ",") != std::string::npos)
      rows.push_back({std::move(it), {}, {}});
  int disturbed = 0;
  for (int round = 0; round < rounds; ++round) {
    const plan::World world = world_of(file, base_plan(2, asp(), iterations), data);
    if (file.empty() || round == 0)
      std::printf("# Round %d\n%s", round + 1, to_toml(world).c_str());
    for (Row& row : rows) {
      Plan plan = row.of.plan;
      plan.seed = static_cast<std::uint64_t>(round) + 1;
      double other_load = std::numeric_limits<double>::infinity();
      for (int i = 0; i < kMaxAttempts && other_load > quiet; ++i) {
        auto figures = measure(plan, other_load);
        if (other_load <= quiet || i + 1 == kMaxAttempts)
          row.measured.push_back(std::move(figures));
      }
      disturbed += other_load > quiet ? 1 : 0;
      plan.simulated = world;
      plan.simulated->cost_only = true;
      row.simulated.push_back(run_plan(plan));
    }
    std::fprintf(stderr, "round %d of %d\n", round + 1, rounds);
  }
  if (disturbed > 0)
    std::printf("\nOther programs disturbed %d of the measured runs.\n", disturbed);
  std::printf("\n%-34s %28s %28s   difference\n", "", "measured: median (range)", "simulated");
  for (const Row& row : rows) print(row);
  return 0;
}
