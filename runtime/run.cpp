#include <unistd.h>

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <iostream>
#include <mutex>

#include "core/check.hpp"
#include "core/text.hpp"
#include "models/datasets/load.hpp"
#include "models/safetensors.hpp"
#include "monitoring/event_log.hpp"
#include "monitoring/format.hpp"
#include "monitoring/profile_table.hpp"
#include "monitoring/progress_line.hpp"
#include "monitoring/run_folder.hpp"
#include "monitoring/summary.hpp"
#include "policies/straggler/straggler.hpp"
#include "runtime/attend.hpp"
#include "runtime/cluster/run.hpp"
#include "runtime/interrupt.hpp"
#include "runtime/scenario.hpp"
#include "sim/determinism.hpp"
#include "sim/simulation.hpp"

namespace leeway {
namespace {

/// Keeps what the monitor tells, and lets the caller wait for the end.
class Ending final : public Audience {
 public:
  void progress(const Progress& progress) override {
    std::lock_guard lock(mutex_);
    history_.push_back(progress);
  }
  void ended(const RunTotals& totals) override {
    std::lock_guard lock(mutex_);
    history_.push_back(totals.last);
    totals_ = totals;
    changed_.notify_all();
  }
  /// True when the run has ended; waits a little for it.
  bool wait(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [&] { return totals_.has_value(); });
  }
  RunTotals take_totals() { return std::move(*totals_); }
  std::vector<Progress> take_history() { return std::move(history_); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Progress> history_;
  std::optional<RunTotals> totals_;
};

/// Whole tensors from blocks; null without blocks.
std::shared_ptr<const NamedTensors> assemble(const Job& job, const std::vector<Blob>& blocks) {
  if (blocks.empty()) return nullptr;
  NamedTensors tensors;
  for (const auto& parameter : job.model->parameters())
    tensors.push_back({parameter.name, parameter.spec.shape, DType::f32,
                       Blob::floats(parameter.spec.shape.count())});
  for (const auto& block : job.layout->blocks()) {
    const Blob data = blocks[block.id.value()].on_host();
    for (const auto& slice : block.slices) {
      auto& tensor = tensors[static_cast<std::size_t>(slice.parameter)];
      const std::int64_t row = tensor.shape.row_count();
      std::copy_n(data.as_floats() + slice.offset, slice.rows * row,
                  tensor.data.mutable_floats() + slice.first_row * row);
    }
  }
  return std::make_shared<const NamedTensors>(std::move(tensors));
}

Result refused(std::string error) {
  Result result;
  result.exit_code = 2;
  result.error = std::move(error);
  return result;
}

void fill(Result& result, const Job& job, RunTotals totals) {
  const auto& last = totals.last;
  result.ran = true;
  result.seconds = (last.now - Instant{}).seconds();
  result.samples_trained = totals.end.samples_trained;
  result.samples_per_second =
      static_cast<double>(result.samples_trained) / std::max(result.seconds, 1e-9);
  result.iterations = last.iterations;
  result.max_clock_gap = last.max_clock_gap;
  result.parked_pulls = last.parked_pulls;
  result.partial_pushes = totals.end.partial_pushes;
  result.dropped_pushes = totals.end.dropped_pushes;
  result.seed = job.plan.seed;
  result.plan = job.plan;
  result.vocabulary = job.data.train->vocabulary();
  const auto bound = job.consistency->largest_bound();
  if (bound != kUnbounded) result.staleness_bound = bound;
  if (!totals.evaluations.empty() && totals.evaluations.back().final) {
    result.test_loss = totals.evaluations.back().loss;
    result.test_accuracy = totals.evaluations.back().accuracy;
  }
  result.weights = assemble(job, totals.weights);
  if (totals.end.reason == msg::RunEnded::Reason::failed) {
    result.exit_code = 1;
    result.error = totals.end.text;
    result.last_snapshot = assemble(job, totals.last_snapshot);
  } else if (totals.end.reason == msg::RunEnded::Reason::interrupted) {
    result.exit_code = 130;
  }
  result.totals = std::move(totals);  // without the blocks, which are in `weights` now
}

/// Of a run that failed, keeps the weights that were evaluated last: the others may be lost with a
/// shard.
void keep_last_snapshot(Result& result, RunFolder* folder) {
  if (!result.last_snapshot) return;
  const Iteration iteration = result.totals.last_snapshot_iteration;
  std::string text = concat("; the last snapshot that was evaluated is at iteration ", iteration);
  if (folder) {
    const auto saved = folder->keep_last_snapshot(*result.last_snapshot, iteration);
    text += saved
                ? concat(": go on from it with --init ", folder->path("last-snapshot.safetensors"))
                : concat("; ", saved.error().text);
  }
  result.totals.end.text += text;
  result.error += text;
}

/// What a profile compares with: the processor, unless a GPU had a part in it.
std::optional<kernels::Peak> peak_of(const Job& job) {
  if (!job.devices.cpu_only()) return std::nullopt;
  return kernels::measure_peak();
}

using OnEvent = std::function<void(Address, Instant, const Event&)>;

void run_here(const std::shared_ptr<const Job>& job, OnEvent on_event,
              const std::vector<Audience*>& audience, Ending& ending, Result& result) {
  auto placement = place_actors(0, job->plan, "");
  LW_CHECK(bool(placement), "all actors have a place in this process");
  NodeHost host(job, audience,
                {.placement = std::move(*placement), .on_event = std::move(on_event)});
  host.start();
  const auto ended = attend(host, [&] { return ending.wait(std::chrono::milliseconds(20)); });
  if (ended) return;
  result.exit_code = 1;
  result.error = ended.error().text;
}

/// As run_here, with the roles spread over the nodes of a cluster.
void run_on_cluster(ClusterRun& cluster, const std::shared_ptr<const Job>& job, OnEvent on_event,
                    const std::vector<Audience*>& audience, Ending& ending, Result& result) {
  const auto ended = cluster.run(job, audience, std::move(on_event),
                                 [&] { return ending.wait(std::chrono::milliseconds(20)); });
  if (ended) return;
  result.error = ended.error().text;
  result.exit_code = cluster.began() ? 1 : cluster.interrupted() ? 130 : 2;
}

/// The nodes, when there are some.
Expected<std::unique_ptr<ClusterRun>> open_cluster(const Plan& plan, const RunOptions& options) {
  if (!options.cluster || options.cluster->nodes.empty()) return std::unique_ptr<ClusterRun>();
  if (options.profile)
    return Error{"--profile looks at this process alone; leave it out, or run without --nodes"};
  return ClusterRun::open(plan, *options.cluster, options.trace, [&](const std::string& text) {
    // On a terminal, in place of the progress line.
    if (!options.quiet)
      std::cerr << (isatty(STDERR_FILENO) == 1 ? "\r\x1b[K" : "") << "cluster: " << text
                << std::endl;
  });
}

void run_simulated(const std::shared_ptr<const Job>& job, OnEvent on_event,
                   const std::vector<Audience*>& audience, Result& result) {
  sim::Simulation simulation(job, audience, {.on_event = std::move(on_event)});
  const auto began = std::chrono::steady_clock::now();
  Interrupts interrupts(simulation.host());
  try {
    result.error = simulation.run([&] { interrupts.look(); });
  } catch (const CheckFailed& failed) {
    result.error = failed.what();
  }
  if (!result.error.empty()) {
    result.exit_code = 1;
    result.error = concat("simulation: ", result.error, "; the same command with --seed ",
                          job->plan.seed, " repeats it");
    return;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  result.simulated_in_seconds = took.count();
  result.protocol_hash = simulation.host().trace().protocol();
}

/// Runs the plan twice more, with nothing shared but the data, and compares the two.
Status check_determinism(const Plan& plan, const TrainTest& data) {
  const auto difference = sim::compare_runs([&](const sim::Trace::Options& trace) {
    const auto job = make_job(plan, data);
    LW_CHECK(bool(job), job ? std::string() : job.error().text);
    sim::Simulation simulation(*job, {}, {.checkers = false, .trace = trace});
    simulation.run();
    return simulation.host().trace();
  });
  if (!difference) return {};
  return Error{concat("simulation: two runs of seed ", plan.seed, " differ in step ",
                      difference->step, ". One: ", difference->first,
                      ". The other: ", difference->second)};
}

}  // namespace

std::span<const float> Result::weight(const std::string& name) const {
  LW_CHECK(weights, "a shard was lost, and its weights with it");
  for (const auto& tensor : *weights)
    if (tensor.name == name)
      return {tensor.data.as_floats(), static_cast<std::size_t>(tensor.shape.count())};
  LW_CHECK(false, name);
}

Result run(const Plan& plan, const RunOptions& options) {
  if (const auto valid = validate(plan); !valid) return refused(valid.error().text);
  if (const auto there = check_files(plan.stragglers); !there) return refused(there.error().text);
  auto data = load_data(plan.data, plan.seed);
  if (!data) return refused(data.error().text);
  const auto profile = options.profile ? std::make_shared<Profile>() : nullptr;
  const auto cluster = open_cluster(plan, options);
  if (!cluster) return refused(cluster.error().text);
  std::function<bool(Address)> here;
  if (*cluster) here = [&](Address actor) { return (*cluster)->is_here(actor); };
  const auto made = make_job(plan, std::move(*data), {.profile = profile, .here = std::move(here)});
  if (!made) return refused(made.error().text);
  const auto& job = *made;
  if (*cluster)
    if (const auto ready = (*cluster)->prepare(*job); !ready) {
      Result result = refused(ready.error().text);
      if ((*cluster)->interrupted()) result.exit_code = 130;
      return result;
    }
  if (plan.simulated && options.check_determinism) {
    if (const auto same = check_determinism(plan, job->data); !same) {
      Result result = refused(same.error().text);
      result.exit_code = 1;
      return result;
    }
  }

  std::unique_ptr<RunFolder> folder;
  if (!options.folder.empty()) {
    auto opened = RunFolder::create(options.folder, *job);
    if (!opened) return refused(opened.error().text);
    folder = std::move(*opened);
  }
  std::unique_ptr<EventLog> events;
  if (folder && options.trace) events = std::make_unique<EventLog>(folder->path("events.jsonl"));
  Ending ending;
  ProgressLine line(*job, std::cerr);
  std::vector<Audience*> audience;
  if (!options.quiet) audience.push_back(&line);
  if (folder) audience.push_back(folder.get());
  audience.push_back(&ending);

  Result result;
  const InterruptGuard guard;
  {
    OnEvent on_event = options.on_event;
    if (events)
      on_event = [&](Address actor, Instant at, const Event& event) {
        events->write(actor, at, event);
        if (options.on_event) options.on_event(actor, at, event);
      };
    if (*cluster) {
      run_on_cluster(**cluster, job, std::move(on_event), audience, ending, result);
    } else if (plan.simulated) {
      run_simulated(job, std::move(on_event), audience, result);
    } else {
      run_here(job, std::move(on_event), audience, ending, result);
    }
  }
  const std::string standstill = *cluster ? (*cluster)->standstill() : "";
  if (!result.error.empty()) {
    result.error += standstill;
    return result;
  }
  fill(result, *job, ending.take_totals());
  result.history = ending.take_history();
  if (result.totals.end.reason == msg::RunEnded::Reason::failed) {
    result.error += standstill;
    result.totals.end.text += standstill;
  }
  keep_last_snapshot(result, folder.get());
  if (folder) {
    result.folder = options.folder;
    const auto saved =
        folder->finish(result_json(*job, result.totals),
                       result.weights ? *result.weights : NamedTensors(), result.history);
    if (!saved && result.exit_code == 0) {
      result.exit_code = 1;
      result.error = saved.error().text;
    }
  }
  if (!options.quiet) {
    std::string text = summary(*job, result.totals, options.folder);
    if (plan.simulated)
      text += concat(options.check_determinism ? "\nTwo further runs took the same steps." : "",
                     "\nSimulated: ", duration(result.seconds), " of virtual time in ",
                     duration(result.simulated_in_seconds), ", ",
                     fixed(result.seconds / std::max(result.simulated_in_seconds, 1e-9), 1),
                     " times as fast as it would be.\n");
    if (profile) text += "\n" + profile_table(profile->rows(), peak_of(*job));
    if (options.print) {
      options.print(text);
    } else {
      std::cout << text << std::flush;
    }
  }
  // It came too late to stop this run; a program that would start another has to hear of it.
  if (result.exit_code == 0 && guard.interrupted()) result.exit_code = 130;
  return result;
}

}  // namespace leeway
