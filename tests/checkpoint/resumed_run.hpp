#pragma once
// Simulated runs that write checkpoints to a simulated disk, and that are resumed from them.
#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/store.hpp"
#include "core/text.hpp"
#include "sim/disk.hpp"
#include "sim/simulation.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {

using checkpoint::Store;

/// A disk with the checkpoints of one run.
struct Disk {
  sim::SimulatedDisk files;
  std::shared_ptr<const Store> store = std::make_shared<Store>(files, "run/checkpoints");
};

/// Marks the samples that are trained, from the samples that a checkpoint has trained on.
struct TrainedSamples {
  explicit TrainedSamples(const Job& job) : size(job.data.train->size()) {
    if (!job.resumed) return;
    const auto& supply = job.resumed->manifest.scheduler.supply;
    if (!job.split) mark(0, supply.fresh, 1);
    for (std::size_t share = 0; share < supply.fresh_of_parts.size(); ++share)
      mark_share(job.split->begins[share], job.split->begins[share + 1],
                 supply.fresh_of_parts[share]);
    for (const auto& range : supply.returned) {
      const std::int64_t first = range.epoch.value() * size;
      mark(first + range.begin, first + range.end, -1);
    }
  }
  void mark(std::int64_t begin, std::int64_t end, int by) {
    counts.resize(std::max(counts.size(), static_cast<std::size_t>(end)));
    for (std::int64_t i = begin; i < end; ++i) counts[static_cast<std::size_t>(i)] += by;
  }
  /// The first `fresh` samples of a data share, epoch by epoch.
  void mark_share(std::int64_t begin, std::int64_t end, std::int64_t fresh) {
    for (std::int64_t epoch = 0; fresh > 0; ++epoch, fresh -= end - begin)
      mark(epoch * size + begin, epoch * size + std::min(end, begin + fresh), 1);
  }
  void add(const Event& event) {
    const auto* trained = event.as<event::Trained>();
    if (!trained) return;
    const std::int64_t first = trained->epoch.value() * size;
    mark(first + trained->begin, first + trained->end, 1);
  }
  bool each_once(std::int64_t samples) const {
    return static_cast<std::int64_t>(counts.size()) == samples &&
           std::all_of(counts.begin(), counts.end(), [](int count) { return count == 1; });
  }

  std::int64_t size;  // of an epoch
  std::vector<int> counts;
};

/// The job of a run with a checkpoint every `iterations`, from checkpoint `from` if given.
inline std::shared_ptr<const Job> job_with(Plan plan, const Disk& disk, std::uint64_t iterations,
                                           std::optional<std::uint64_t> from = std::nullopt) {
  JobOptions options;
  options.checkpoints = disk.store;
  plan.checkpoints = {.keep = 1000, .every = plan::EveryIterations{iterations}};
  options.run = "test";
  if (from) {
    const auto fresh = job_of(plan);
    auto loaded = disk.store->load(*from, *fresh->model);
    LW_CHECK(bool(loaded), loaded ? std::string() : loaded.error().text);
    options.next_checkpoint = disk.store->numbers()->back() + 1;  // keeps those of the first run
    options.resumed = std::make_shared<checkpoint::Checkpoint>(std::move(*loaded));
  }
  auto data = load_data(plan.data, plan.seed);
  const auto job = make_job(plan, std::move(*data), std::move(options));
  LW_CHECK(bool(job), job ? std::string() : job.error().text);
  return *job;
}

using Watch = std::function<void(Address, Instant, const Event&)>;

/// Runs this job under all checkers to its end. Throws unless it trains every sample once.
inline RunTotals run(const Plan& plan, const Disk& disk, std::uint64_t iterations,
                     std::optional<std::uint64_t> from = std::nullopt, const Watch& watch = {}) {
  const auto job = job_with(plan, disk, iterations, from);
  TrainedSamples trained(*job);
  sim::SimulationOptions simulation_options;
  simulation_options.on_event = [&](Address actor, Instant at, const Event& event) {
    trained.add(event);
    if (watch) watch(actor, at, event);
  };
  sim::Simulation simulation(job, {}, std::move(simulation_options));
  const std::string stuck = simulation.run();
  LW_CHECK(stuck.empty(), stuck);
  const auto& totals = simulation.totals();
  LW_CHECK(totals.end.reason == msg::RunEnded::Reason::finished, totals.end.text);
  const auto samples =
      static_cast<std::int64_t>(plan.stop.epochs * static_cast<double>(job->data.train->size()));
  LW_CHECK(trained.each_once(samples), "a sample was trained twice or never");
  return totals;
}

/// Lets an iteration take longer than a checkpoint.
inline void compute_slowly(Plan& plan) {
  plan.simulated = plan::World{};
  plan.simulated->speed = 1e-5;
}

}  // namespace leeway::test
