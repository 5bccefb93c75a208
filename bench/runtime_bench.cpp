// Overhead of the runtime: whole runs of the MLP 784-512-256-10 (batch 64, momentum SGD), with
// pulls and pushes, interleaved with a plain loop over oneDNN's sgemm; and pull+push cycles per
// second of a model with 1,010 parameters.
//
//   runtime_bench [PAIRS [TEXT]]     number of interleaved rounds, 7 by default; with TEXT only the
//                                    rows whose name contains it, without ratios
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "bench/plain_loop.hpp"
#include "core/text.hpp"
#include "kernels/executor.hpp"
#include "kernels/threads.hpp"
#include "leeway.hpp"
#include "models/datasets/first_samples.hpp"
#include "models/datasets/load.hpp"

namespace {

using namespace leeway;

constexpr std::int64_t kBatch = 64;
constexpr std::uint64_t kIterations = 1500;  // per worker: about a second

/// The data with a test set that costs nothing to evaluate.
TrainTest loaded(const plan::DataSource& source) {
  auto data = load_data(source, 1);
  if (!data) {
    std::fprintf(stderr, "%s\n", data.error().text.c_str());
    std::exit(2);
  }
  data->test = std::make_shared<FirstSamples>(data->test, 16);
  return *data;
}

/// Pins this thread and its future threads to these cores.
void use_cores(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(static_cast<std::size_t>(core), &set);
  sched_setaffinity(0, sizeof set, &set);
}

double seconds_of(const std::function<void()>& work) {
  const auto began = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

void plain_loop() {
  kernels::use_one_compute_thread();
  bench::PlainLoop loop(kBatch);
  const std::vector<std::int32_t> labels(kBatch, 3);
  for (std::uint64_t i = 0; i < kIterations; ++i) loop.step(labels.data(), true);
}

/// Samples per second of `count` concurrent plain loops, each on its own core.
double plain(std::uint32_t count) {
  const double seconds = seconds_of([&] {
    std::vector<std::thread> threads;
    for (std::uint32_t i = 0; i < count; ++i)
      threads.emplace_back([i] {
        use_cores({static_cast<int>(i)});
        plain_loop();
      });
    for (auto& thread : threads) thread.join();
  });
  return static_cast<double>(count * kIterations * kBatch) / seconds;
}

Plan mlp_plan(std::uint32_t workers, bool prefetch) {
  Scenario scenario("runtime-bench", "");
  scenario.data(plan::CustomData{"fashion"})
      .model({flatten(), linear(512), relu(), linear(256), relu(), linear(10)})
      .optimizer(momentum(0.01, 0.9))
      .consistency(ssp(2))
      .prefetch(prefetch)
      .workers(workers)
      .shards(1)
      .batch(kBatch)
      .epochs(0)
      .iterations(workers * kIterations)
      .evaluate_every(0);
  return scenario.plan();
}

double leeway_run(const Plan& plan) {
  const Result result = run(plan, {.quiet = true});
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.error.c_str());
    std::exit(1);
  }
  return result.samples_per_second;
}

/// Pull+push cycles per second: logistic regression on 100 features and 10 classes, one sample per
/// iteration.
double cycles(std::uint32_t workers, bool prefetch) {
  Plan plan = mlp_plan(workers, prefetch);
  plan.data = plan::CustomData{"clusters"};
  plan.model = {plan::Linear{10}};
  plan.batch = 1;
  plan.lease_size = 4096;
  plan.consistency = plan::Asp{};
  plan.stop.iterations = workers * 20000;
  return leeway_run(plan);
}

struct Row {
  std::string name;
  std::function<double()> run;
  int peer = -1;  // index of the row to compare with
  std::vector<double> figures;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void print(const std::vector<Row>& rows) {
  std::printf("%-52s %10s %10s %10s   %s\n", "", "median", "min", "max",
              "ratio: median (min to max)");
  for (const auto& row : rows) {
    const auto [least, most] = std::minmax_element(row.figures.begin(), row.figures.end());
    std::printf("%-52s %10.0f %10.0f %10.0f", row.name.c_str(), median(row.figures), *least, *most);
    if (row.peer >= 0) {
      std::vector<double> ratios;
      for (std::size_t i = 0; i < row.figures.size(); ++i)
        ratios.push_back(row.figures[i] / rows[static_cast<std::size_t>(row.peer)].figures[i]);
      const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
      std::printf("   %.3f (%.3f to %.3f)", median(ratios), *low, *high);
    }
    std::printf("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int pairs = argc > 1 ? std::atoi(argv[1]) : 7;
  if (pairs < 1 || argc > 3) {
    std::fprintf(stderr, "usage: runtime_bench [PAIRS [TEXT]], PAIRS at least 1\n");
    return 2;
  }
  const TrainTest fashion = loaded(fashion_mnist());
  const TrainTest small = loaded(clusters(10, 100, 20000));
  register_data("fashion", [&](std::uint64_t) { return Expected<TrainTest>(fashion); });
  register_data("clusters", [&](std::uint64_t) { return Expected<TrainTest>(small); });
  const auto on = [](std::vector<int> cores, std::function<double()> run) {
    return [cores = std::move(cores), run = std::move(run)] {
      use_cores(cores);
      return run();
    };
  };
  std::vector<Row> rows = {
      {"samples/s: plain loop, one core", on({0}, [] { return plain(1); })},
      {"1 worker, pinned to the same core", on({0}, [] { return leeway_run(mlp_plan(1, false)); }),
       0},
      {"1 worker, pinned, prefetch", on({0}, [] { return leeway_run(mlp_plan(1, true)); }), 0},
      {"1 worker, a second core free", on({0, 1}, [] { return leeway_run(mlp_plan(1, false)); }),
       0},
      {"1 worker, a second core free, prefetch",
       on({0, 1}, [] { return leeway_run(mlp_plan(1, true)); }), 0},
      {"samples/s: two plain loops, two cores", on({0, 1}, [] { return plain(2); })},
      {"2 workers, two cores", on({0, 1}, [] { return leeway_run(mlp_plan(2, false)); }), 5},
      {"2 workers, two cores, prefetch", on({0, 1}, [] { return leeway_run(mlp_plan(2, true)); }),
       5},
      {"cycles/s: 1 worker, blocking", on({0, 1}, [] { return cycles(1, false); })},
      {"cycles/s: 1 worker, prefetch", on({0, 1}, [] { return cycles(1, true); })},
      {"cycles/s: 4 workers, blocking each", on({0, 1}, [] { return cycles(4, false); })},
  };
  if (argc > 2) {
    std::erase_if(rows, [&](const Row& row) { return row.name.find(argv[2]) == row.name.npos; });
    for (Row& row : rows) row.peer = -1;
  }
  for (int i = 0; i < pairs; ++i) {
    for (auto& row : rows) row.figures.push_back(row.run());
    std::fprintf(stderr, "round %d of %d\n", i + 1, pairs);
  }
  print(rows);
  return 0;
}
