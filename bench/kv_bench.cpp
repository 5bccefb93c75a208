// Stores: iterations of a loop that computes nothing, on one shard.
//
//   kv_bench [--rounds 3] [--seconds 2] [--workers 1]
//
// mlp:   pulls and pushes the six tensors of an MLP (2.14 MB). A worker reads all weights and
// writes
//        all gradients, as in push_pull_bench.
// views: the same in memory of the store, without copies.
// small: pulls and pushes one float; an iteration is a round trip.
// many:  pulls and pushes 10,000 keys of 100 floats (4 MB), with one call each.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "bench/sum.hpp"
#include "core/text.hpp"
#include "kv.hpp"
#include "kv/launch.hpp"

namespace {

using namespace leeway;
using Clock = std::chrono::steady_clock;

std::vector<Shape> shapes_of(const std::string& name) {
  if (name == "small") return {{}};
  if (name == "many") return std::vector<Shape>(10000, Shape{100});
  return {{784, 512}, {512}, {512, 256}, {256}, {256, 10}, {10}};
}

/// The keys of a store, 0, 1, 2, ..., and memory for all of them.
struct Table {
  Table(kv::Store& of, const std::string& name) : store(of), shapes(shapes_of(name)) {
    for (std::size_t key = 0; key < shapes.size(); ++key) {
      weights.emplace_back(static_cast<std::size_t>(shapes[key].count()), 0.0f);
      gradients.push_back(weights.back());
      store.init(key, {weights.back().data(), shapes[key]});
    }
    for (std::size_t key = 0; key < shapes.size(); ++key) {
      outs.emplace_back(key, kv::View{weights[key].data(), shapes[key]});
      pushed.emplace_back(key, kv::ConstView{gradients[key].data(), shapes[key]});
    }
  }
  void copy_iteration() {
    store.pull(outs);
    float seen = 0;
    for (std::size_t key = shapes.size(); key-- > 0;) {
      std::fill(gradients[key].begin(), gradients[key].end(), 1 + seen * 1e-30f);
      store.push(key, {gradients[key].data(), shapes[key]});
      seen += bench::sum(weights[key]);
    }
    store.end_iteration();
  }
  void view_iteration() {
    float seen = 0;
    for (std::size_t key = shapes.size(); key-- > 0;) {
      const auto count = static_cast<std::size_t>(shapes[key].count());
      std::fill_n(store.gradient(key).floats(), count, 1 + seen * 1e-30f);
      const kv::ConstView seen_weights = store.view(key);
      seen += bench::sum(std::span(seen_weights.floats(), count));
      store.push(key);
    }
    store.end_iteration();
  }
  /// Neither reads nor writes the floats itself.
  void batch_iteration() {
    store.pull(outs);
    store.push(pushed);
    store.end_iteration();
  }

  kv::Store& store;
  std::vector<Shape> shapes;
  std::vector<std::vector<float>> weights, gradients;
  std::vector<std::pair<kv::Key, kv::View>> outs;
  std::vector<std::pair<kv::Key, kv::ConstView>> pushed;
};

/// Iterations per second of one worker.
double measure(kv::Store& store, const std::string& name, double seconds) {
  Table table(store, name);
  const auto iterate = [&] {
    if (name == "many") return table.batch_iteration();
    name == "views" ? table.view_iteration() : table.copy_iteration();
  };
  for (int warm = 0; warm < 20; ++warm) iterate();
  const auto begin = Clock::now();
  std::chrono::duration<double> passed{};
  int iterations = 0;
  for (; passed.count() < seconds; passed = Clock::now() - begin, ++iterations) iterate();
  return iterations / passed.count();
}

double in_local(const std::string& name, double seconds) {
  auto store = kv::Store::create("local");
  return measure(store, name, seconds);
}

double on_thread(const std::string& name, double seconds) {
  double rate = 0;
  const auto result = kv::run([&](kv::Store& store) { rate = measure(store, name, seconds); },
                              {.workers = 1, .shards = 1});
  if (!result.error.empty()) std::cerr << result.error << '\n';
  return rate;
}

/// The sum of the rates of all workers.
double in_processes(const std::string& name, double seconds, const std::string& transport,
                    int workers) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / concat("kv_bench.", getpid());
  std::filesystem::create_directory(folder);
  const int code = kv::launch(
      {.program = "/proc/self/exe",
       .arguments = {"--worker", folder.string(), "--only", name, "--seconds", concat(seconds)},
       .flags = {"--workers", concat(workers), "--shards", "1", "--no-out", "--quiet",
                 "--transport", transport}});
  double sum = 0;
  if (code == 0)
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      double rate = 0;
      std::ifstream(file.path()) >> rate;
      sum += rate;
    }
  std::filesystem::remove_all(folder);
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Iterations of stores per second");
  int rounds = 3, workers = 1;
  double seconds = 2;
  std::string worker, only;
  app.add_option("--rounds", rounds, "Interleaved rounds")->capture_default_str();
  app.add_option("--seconds", seconds, "Of each measurement")->capture_default_str();
  app.add_option("--only", only, "mlp, views, small or many");
  app.add_option("--workers", workers, "Processes of a launch")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--worker", worker, "Set by kv_bench itself: folder for the rate");
  CLI11_PARSE(app, argc, argv);
  if (!worker.empty()) {
    auto store = kv::Store::create("dist_ssp(3)");
    const double rate = measure(store, only, seconds);
    std::ofstream(std::filesystem::path(worker) / concat(store.rank())) << rate;
    return 0;
  }
  std::map<std::pair<std::string, std::string>, std::vector<double>> rates;
  for (int round = 0; round < rounds; ++round)
    for (const std::string name : {"mlp", "views", "small", "many"}) {
      if (!only.empty() && only != name) continue;
      rates[{name, "local"}].push_back(in_local(name, seconds));
      rates[{name, "thread"}].push_back(on_thread(name, seconds));
      for (const std::string transport : {"shm", "tcp"})
        rates[{name, transport}].push_back(in_processes(name, seconds, transport, workers));
    }
  std::printf("%-6s %-8s %12s  %s\n", "keys", "where", "median", "min to max, iterations/s");
  for (auto& [where, all] : rates) {
    std::sort(all.begin(), all.end());
    std::printf("%-6s %-8s %12.0f  %.0f to %.0f\n", where.first.c_str(), where.second.c_str(),
                all[all.size() / 2], all.front(), all.back());
  }
}
