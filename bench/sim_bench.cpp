// Steps per second of the simulator and memory per worker: whole runs of the MLP 784-32-10, batch
// 16, that compute only costs, with and without checkers.
//
//   sim_bench [--workers 10000] [--iterations 300000] [--shards 4] [--staleness 3] [--slow 0:4x]
//             [--fault 2:crash@10] [--seed 1] [--rounds 1] [--agents 0]
//
// With --agents, the run is on a simulated cluster with this number of nodes; faults may then
// concern nodes: node2:crash(2s)@9s.
//
// Steps are the entries of the trace: delivered messages, timers, finished work and events of
// roles. Seconds are CPU time. Each run has its own process. "bytes/worker" is the growth of the
// process from the creation of the roles to the end of the run. "hash" is the hash of the protocol:
// a change of the simulator that keeps its behaviour keeps the hash.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <optional>
#include <vector>

#include "core/memory.hpp"
#include "runtime/flags/values.hpp"
#include "runtime/models.hpp"
#include "sim/cluster/simulation.hpp"
#include "sim/simulation.hpp"

namespace {

using namespace leeway;

/// The number of samples of Fashion-MNIST, all zeros.
class BlankImages final : public Dataset {
 public:
  explicit BlankImages(std::int64_t size) : size_(size) {}
  std::int64_t size() const override { return size_; }
  Shape sample_shape() const override { return {784}; }
  int classes() const override { return 10; }
  std::int64_t target_count() const override { return 0; }
  void gather(std::span<const std::int64_t> samples, float* x, std::int32_t* labels,
              float*) const override {
    std::fill_n(x, samples.size() * 784, 0.0f);
    std::fill_n(labels, samples.size(), 0);
  }

 private:
  std::int64_t size_;
};

struct Figures {
  std::uint64_t steps = 0, hash = 0;
  double seconds = 0, virtual_seconds = 0, bytes_per_worker = 0;
};

template <class T>
T must(Expected<T> value) {
  if (value) return std::move(*value);
  std::fprintf(stderr, "sim_bench: %s\n", value.error().text.c_str());
  std::exit(2);
}

/// CPU time of this process, which does not depend on the load of the machine.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Runs the job. Kind: Simulation or ClusterSimulation.
template <class Kind>
Figures simulate(const std::shared_ptr<const Job>& job, bool checked) {
  const auto before = static_cast<double>(resident_bytes());
  Kind simulation(job, {}, {.checkers = checked});
  const double began = cpu_seconds();
  if (const auto stuck = simulation.run(); !stuck.empty()) throw std::runtime_error(stuck);
  const double took = cpu_seconds() - began;
  return {.steps = simulation.trace().steps(),
          .hash = simulation.trace().protocol(),
          .seconds = took,
          .virtual_seconds = (simulation.now() - Instant{}).seconds(),
          .bytes_per_worker = (static_cast<double>(resident_bytes()) - before) / job->plan.workers};
}

Figures simulate_in_child(const std::shared_ptr<const Job>& job, bool checked) {
  int channel[2];
  if (pipe(channel) != 0) throw std::runtime_error("cannot create a pipe");
  const pid_t child = fork();
  if (child == 0) {
    int status = 1;
    try {
      const Figures figures = sim::has_agents(job->plan)
                                  ? simulate<sim::ClusterSimulation>(job, checked)
                                  : simulate<sim::Simulation>(job, checked);
      status = write(channel[1], &figures, sizeof figures) == sizeof figures ? 0 : 1;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "sim_bench: %s\n", error.what());
    }
    _exit(status);
  }
  close(channel[1]);
  Figures figures;
  const bool complete = read(channel[0], &figures, sizeof figures) == sizeof figures;
  close(channel[0]);
  waitpid(child, nullptr, 0);
  if (!complete) throw std::runtime_error("a run failed");
  return figures;
}

struct Spread {
  double median, least, most;
};

template <class Of>
Spread spread(const std::vector<Figures>& runs, Of of) {
  std::vector<double> values;
  for (const Figures& run : runs) values.push_back(of(run));
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values.back()};
}

void print(const char* name, const std::vector<Figures>& runs) {
  const auto rate =
      spread(runs, [](const Figures& f) { return static_cast<double>(f.steps) / f.seconds; });
  const auto bytes = spread(runs, [](const Figures& f) { return f.bytes_per_worker; });
  const auto time = spread(runs, [](const Figures& f) { return f.seconds; });
  const Figures& any = runs.front();
  std::printf("%-12s %10llu %8.2f %10.0f (%.0f to %.0f) %8.3f %8.0f  %016llx\n", name,
              static_cast<unsigned long long>(any.steps), time.median, rate.median, rate.least,
              rate.most, any.virtual_seconds / time.median, bytes.median,
              static_cast<unsigned long long>(any.hash));
}

}  // namespace

int main(int argc, char** argv) {
  Plan plan;
  plan.name = "sim-bench";
  plan.data = plan::CustomData{"blank"};
  plan.model = mlp({32}, 10);
  plan.optimizer = {0.05, 0, plan::Sgd{}};
  plan.workers = 10'000;
  plan.shards = 4;
  plan.batch = 16;
  plan.stop = {.epochs = 0, .iterations = 300'000};
  plan.evaluate_every = 0;
  plan.simulated = plan::World{.cost_only = true};
  std::string staleness = "3";
  std::vector<std::string> slow, faults;
  int rounds = 1;
  CLI::App app("Steps per second of the simulator and memory per worker.");
  app.add_option("--workers", plan.workers);
  app.add_option("--iterations", plan.stop.iterations, "Iterations of all workers together");
  app.add_option("--shards", plan.shards);
  app.add_option("--staleness", staleness, "A number, bsp or asp");
  app.add_option("--slow", slow, "For example 3:4x");
  app.add_option("--fault", faults, "For example 2:crash@100");
  app.add_option("--seed", plan.seed);
  app.add_option("--agents", plan.simulated->agents, "Nodes of a simulated cluster; 0: none");
  app.add_option("--rounds", rounds, "Interleaved rounds")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  try {
    plan.consistency = must(parse_staleness(staleness));
    for (const auto& fault : faults) plan.faults.push_back(must(parse_fault(fault)));
    if (const auto fits = apply_slow(slow, plan.stragglers); !fits)
      throw std::runtime_error(fits.error().text);
    const auto job = must(
        make_job(plan, {std::make_shared<BlankImages>(60'000), std::make_shared<BlankImages>(16)}));
    std::vector<Figures> plain, checked;
    for (int round = 0; round < rounds; ++round) {
      plain.push_back(simulate_in_child(job, false));
      checked.push_back(simulate_in_child(job, true));
    }
    std::printf("%-12s %10s %8s %10s (least to most) %8s %8s  %s\n", "checkers", "steps", "seconds",
                "steps/s", "virtual", "bytes", "hash");
    std::printf("%-12s %10s %8s %10s %15s %8s %8s\n", "", "", "", "", "", "/real", "/worker");
    print("off", plain);
    print("on", checked);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sim_bench: %s\n", error.what());
    return 1;
  }
}
