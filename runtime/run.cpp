#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <iostream>
#include <mutex>

#include "core/check.hpp"
#include "core/exit_codes.hpp"
#include "core/text.hpp"
#include "models/datasets/load.hpp"
#include "monitoring/format.hpp"
#include "monitoring/profile_table.hpp"
#include "monitoring/progress_line.hpp"
#include "monitoring/run_folder.hpp"
#include "monitoring/summary.hpp"
#include "policies/straggler/straggler.hpp"
#include "runtime/attend.hpp"
#include "runtime/checkpoints.hpp"
#include "runtime/cluster/run.hpp"
#include "runtime/interrupt.hpp"
#include "runtime/outcome.hpp"
#include "runtime/outputs.hpp"
#include "runtime/scenario.hpp"
#include "runtime/tools/calibration_age.hpp"
#include "runtime/user_run.hpp"
#include "sim/cluster/simulation.hpp"
#include "sim/determinism.hpp"
#include "sim/simulation.hpp"

namespace leeway {
namespace {

/// Records the reports of the monitor, and lets the caller wait for the end.
class RunRecorder final : public Audience {
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
  /// Waits up to `time`; true if the run has ended.
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

Result refused(const Plan& plan, std::string error) {
  Result result = empty_result(plan);
  result.exit_code = kExitRefused;
  result.error = std::move(error);
  return result;
}

/// The CPU's peak, for comparison in the profile; none if a GPU took part.
std::optional<kernels::Peak> peak_of(const Job& job) {
  if (!job.devices.cpu_only()) return std::nullopt;
  return kernels::measure_peak();
}

/// Passes events to the program until it throws. Then the run is to stop, and rethrow() throws the
/// program's exception at the end. Takes events from several threads at once.
class EventListener {
 public:
  using OnEvent = std::function<void(Address, Instant, const Event&)>;

  explicit EventListener(OnEvent on_event) : on_event_(std::move(on_event)) {}
  void take(Address actor, Instant at, const Event& event) {
    if (!on_event_ || failed_) return;
    try {
      on_event_(actor, at, event);
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (!thrown_) thrown_ = std::current_exception();
      failed_ = true;
    }
  }
  /// Passes events to this listener; empty if the program takes none.
  OnEvent on_event() {
    if (!on_event_) return {};
    return [this](Address actor, Instant at, const Event& event) { take(actor, at, event); };
  }
  bool failed() const { return failed_; }
  void rethrow() {
    std::lock_guard lock(mutex_);
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

 private:
  const OnEvent on_event_;
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::exception_ptr thrown_;
};

/// Notes the number of each checkpoint that the run writes, in `last`.
OnActorEvent noting_checkpoints(OnActorEvent on_event, std::atomic<std::uint64_t>& last) {
  return [on_event = std::move(on_event), &last](Address actor, Instant at, const Event& event,
                                                 std::uint64_t record) {
    if (const auto* written = event.as<event::CheckpointWritten>()) last = written->number;
    if (on_event) on_event(actor, at, event, record);
  };
}

/// Receivers of the reports of a host that runs a job.
struct Observers {
  ActorObservers actors;
  std::vector<Audience*> audience;
  RunRecorder* recorder;
  StopRequest stop;
  Driver::Page page;  // for nodes that serve it; may be empty

  bool wait_for_end() const { return recorder->wait(std::chrono::milliseconds(20)); }
};

void run_on_threads(const std::shared_ptr<const Job>& job, const Observers& observers,
                    Result& result) {
  auto placement = place_actors(0, job->plan, "");
  LW_CHECK(bool(placement), "all actors have a place in this process");
  LocalNode host(job, observers.audience,
                 {.node = {.placement = std::move(*placement)}, .observers = observers.actors});
  host.start();
  const auto ended = wait_for_end(
      host, [&] { return observers.wait_for_end(); }, observers.stop);
  if (ended) return;
  result.exit_code = kExitFailed;
  result.error = ended.error().text;
}

/// Like run_on_threads, with the roles on the nodes of a cluster.
void run_on_cluster(ClusterRun& cluster, const std::shared_ptr<const Job>& job,
                    const Observers& observers, Result& result) {
  const auto ended = cluster.run(
      job, observers.audience, observers.actors, [&] { return observers.wait_for_end(); },
      observers.stop, observers.page);
  if (ended) return;
  result.error = ended.error().text;
  result.exit_code = cluster.began()         ? kExitFailed
                     : cluster.interrupted() ? kExitInterrupted
                                             : kExitRefused;
}

/// Prints a line. On a terminal, it replaces the progress line.
void say(const RunOptions& options, const std::string& text) {
  if (!options.quiet)
    std::cerr << concat(isatty(STDERR_FILENO) == 1 ? "\r\x1b[K" : "", text, '\n') << std::flush;
}

/// Connects to the nodes; null for a run without nodes.
Expected<std::unique_ptr<ClusterRun>> open_cluster(const Plan& plan, const RunOptions& options) {
  if (!options.cluster || options.cluster->nodes.empty()) return std::unique_ptr<ClusterRun>();
  if (options.profile)
    return Error{"--profile measures only this process; leave out --profile or --nodes"};
  return ClusterRun::open(
      plan, options, [&](const std::string& text) { say(options, concat("cluster: ", text)); });
}

/// `host` takes the messages of the user.
template <class AnySimulation, class Host>
void run_simulation(AnySimulation& simulation, Host& host, const Job& job,
                    const Observers& observers, Result& result) {
  const auto began = std::chrono::steady_clock::now();
  InterruptForwarder interrupts(host, observers.stop);
  try {
    result.error = simulation.run([&] { interrupts.poll(); });
  } catch (const sim::Violation& violation) {
    result.violated = violation.property();
    result.error = violation.what();
  } catch (const CheckFailed& failed) {
    result.error = failed.what();
  }
  if (!result.error.empty()) {
    result.exit_code = kExitFailed;
    result.error = concat("simulation: ", result.error, "; repeat it with --seed ", job.plan.seed);
    return;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  result.simulated_in_seconds = took.count();
  result.protocol_hash = simulation.trace().protocol();
}

void run_simulated(const std::shared_ptr<const Job>& job, const Observers& observers,
                   Result& result) {
  sim::SimulationOptions options;
  if (observers.actors.on_event)
    options.on_event = [&on_event = observers.actors.on_event](Address actor, Instant at,
                                                               const Event& event) {
      on_event(actor, at, event, 0);
    };
  if (observers.actors.on_message)
    options.observers.push_back(message_observer(observers.actors.on_message));
  if (sim::has_agents(job->plan)) {
    sim::ClusterSimulation simulation(job, observers.audience, std::move(options));
    return run_simulation(simulation, simulation, *job, observers, result);
  }
  sim::Simulation simulation(job, observers.audience, std::move(options));
  run_simulation(simulation, simulation.host(), *job, observers, result);
}

/// Simulates the plan twice, sharing only the data, and compares the two runs.
Status check_determinism(const Plan& plan, const TrainTest& data) {
  const auto difference = sim::compare_runs([&](const sim::Trace::Options& trace) {
    const auto job = make_job(plan, data);
    LW_CHECK(bool(job), job ? std::string() : job.error().text);
    const sim::SimulationOptions options{.checkers = false, .trace = trace};
    if (sim::has_agents(plan)) {
      sim::ClusterSimulation simulation(*job, {}, options);
      simulation.run();
      return simulation.trace();
    }
    sim::Simulation simulation(*job, {}, options);
    simulation.run();
    return simulation.trace();
  });
  if (!difference) return {};
  return Error{concat("simulation: two runs of seed ", plan.seed, " differ in step ",
                      difference->step, ". One: ", difference->first,
                      ". The other: ", difference->second)};
}

/// A run that is ready to start.
struct PreparedRun {
  std::unique_ptr<RunCheckpoints> checkpoints;  // holds the lock while nodes still write
  std::unique_ptr<ClusterRun> cluster;          // null: in this process
  std::shared_ptr<const Job> job;
};

/// Loads the data and makes the job. The error says what to change.
Expected<PreparedRun> prepare(const Plan& given, const RunOptions& options) {
  if (const auto valid = validate(given); !valid) return valid.error();
  if (const auto placed = sim::check_place(given); !placed) return placed.error();
  if (sim::has_agents(given) && !options.resume.empty())
    return Error{
        "--resume: a simulated cluster begins at the start of a run; leave out --resume, or "
        "give --world agents=0"};
  if (const auto files = check_sources(given.stragglers); !files) return files.error();
  auto data = load_data(given.data, given.seed);
  if (!data) return data.error();
  PreparedRun run;
  auto cluster = open_cluster(given, options);
  if (!cluster) return cluster.error();
  run.cluster = std::move(*cluster);
  const Plan& plan = run.cluster ? run.cluster->plan() : given;
  auto checkpoints = RunCheckpoints::open(plan, options);
  if (!checkpoints) return checkpoints.error();
  run.checkpoints = std::move(*checkpoints);
  const auto model = make_model(plan, *data->train);
  if (!model) return model.error();
  if (!options.quiet)
    for (const std::string& note : calibration_notes(plan, data->train->sample_shape()))
      say(options, concat("note: ", note));
  JobOptions job_options{.model = *model};
  if (options.profile) job_options.profile = std::make_shared<Profile>();
  if (options.user_run) {
    job_options.user_loops = options.user_run->loops;
    job_options.computed_by_users = true;
    job_options.workers_return = options.user_run->workers_return;
    job_options.initial_weights = options.user_run->initial_weights;
  }
  if (run.cluster)
    job_options.here = [on = run.cluster.get()](Address actor) { return on->is_here(actor); };
  if (const auto ready = run.checkpoints->prepare(plan, **model, *data, job_options); !ready)
    return ready.error();
  auto job = make_job(plan, std::move(*data), std::move(job_options));
  if (!job) return job.error();
  run.job = std::move(*job);
  return run;
}

/// Prints the summary, or hands it to options.print. `kept`: the files of the run.
void print_summary(const Job& job, const Result& result, const std::string& kept,
                   const RunOptions& options) {
  std::string text = summary(job, result.totals);
  if (!kept.empty()) text += "\n" + kept;
  text += resume_text(job, result, options);
  if (job.plan.simulated)
    text += concat(options.check_determinism ? "\nTwo more runs took the same steps." : "",
                   "\nSimulated: ", duration(result.seconds), " of virtual time in ",
                   duration(result.simulated_in_seconds), ", ",
                   fixed(result.seconds / std::max(result.simulated_in_seconds, 1e-9), 1),
                   " times as fast as real time.\n");
  if (job.profile)
    text += concat('\n', profile_table(job.profile->rows(), peak_of(job)),
                   products_text(*job.model, job.devices.workers()));
  if (options.print) return options.print(text);
  std::cout << text << std::flush;
}

}  // namespace

Result run(const Plan& plan, const RunOptions& options) {
  const InterruptGuard guard;
  const auto prepared = prepare(plan, options);
  if (!prepared) return refused(plan, prepared.error().text);
  const auto& [checkpoints, cluster, job] = *prepared;
  if (guard.interrupted()) {
    Result result = refused(plan, "interrupted before the start");
    result.exit_code = kExitInterrupted;
    return result;
  }
  for (const auto& note : job->notes) say(options, note);
  if (const auto note = precision_note(*job); !note.empty() && !cluster) say(options, note);
  if (plan.replicas > 1 && !cluster && !plan.simulated)
    say(options,
        "warning: both replicas of each shard are in this process, whose loss ends the run; "
        "name nodes with --nodes");
  if (cluster) {
    auto ready = checkpoints->put_mark();
    if (ready) ready = cluster->prepare(*job);
    if (!ready) {
      Result result = refused(plan, ready.error().text);
      if (cluster->interrupted()) result.exit_code = kExitInterrupted;
      return result;
    }
  }
  if (plan.simulated && options.check_determinism)
    if (const auto same = check_determinism(plan, job->data); !same) {
      Result result = refused(plan, same.error().text);
      result.exit_code = kExitFailed;
      return result;
    }

  EventListener listener(options.on_event);
  const auto opened_outputs = RunOutputs::open(*job, options, listener.on_event());
  if (!opened_outputs) return refused(plan, opened_outputs.error().text);
  RunOutputs& outputs = **opened_outputs;
  std::unique_ptr<RunFolder> folder;
  if (!options.folder.empty()) {
    auto opened = checkpoints->continues(options.folder) ? RunFolder::resume(options.folder, *job)
                                                         : RunFolder::create(options.folder, *job);
    if (!opened) return refused(plan, opened.error().text);
    folder = std::move(*opened);
    if (const auto note = space_note(options.folder, *job); !note.empty()) say(options, note);
  }
  if (const auto claimed = checkpoints->claim(); !claimed)
    return refused(plan, claimed.error().text);
  if (folder) outputs.open_files(*folder, *job, options);
  for (const auto& note : outputs.notes()) std::cerr << concat(note, '\n') << std::flush;
  RunRecorder recorder;
  ProgressLine progress(*job, std::cerr);
  Observers observers{
      outputs.observers(),
      outputs.audience(),
      &recorder,
      {[&] { return listener.failed() || outputs.stop_requested(); },
       [&] {
         say(options,
             job->checkpoints
                 ? "stops after a checkpoint of the iterations under way; Ctrl-C again ends "
                   "it at once"
                 : "stops; Ctrl-C again ends it at once");
       }},
      outputs.page_for_nodes()};
  std::atomic<std::uint64_t> last_checkpoint{0};
  if (job->checkpoints && !plan.simulated) {
    auto& on_event = observers.actors.on_event;
    on_event = noting_checkpoints(std::move(on_event), last_checkpoint);
    observers.stop.last_checkpoint = [&] { return last_checkpoint.load(); };
  }
  if (!options.quiet) observers.audience.push_back(&progress);
  if (folder) observers.audience.push_back(folder.get());
  observers.audience.push_back(&recorder);

  Result result = empty_result(plan);
  if (cluster) {
    run_on_cluster(*cluster, job, observers, result);
  } else if (plan.simulated) {
    run_simulated(job, observers, result);
  } else {
    run_on_threads(job, observers, result);
  }
  outputs.finish(result.error);
  const std::string pause = cluster ? cluster->pause_text() : "";
  if (!result.error.empty()) {
    listener.rethrow();
    result.error += pause;
    if (last_checkpoint > 0)
      result.error += concat("; continue with: ", resume_command(*job, options));
    return result;
  }
  fill(result, *job, recorder.take_totals());
  result.history = recorder.take_history();
  if (result.totals.end.reason == msg::RunEnded::Reason::failed) {
    result.error += pause;
    result.totals.end.text += pause;
  }
  keep_last_snapshot(result, folder.get());
  std::string kept;
  if (folder) {
    result.folder = options.folder;
    keep_result(result, *job, *folder);
    kept = folder->kept_text(outputs.files());
  }
  listener.rethrow();
  if (!options.quiet) print_summary(*job, result, kept, options);
  if (!std::cout) {
    std::cerr << plan.name << ": " << kUnwritten << std::endl;
    if (result.exit_code == kExitOk) result.exit_code = kExitFailed;
  }
  if (options.strict) be_strict(result);
  // A signal after the end of this run must still stop a program of several runs.
  if (result.exit_code == kExitOk && guard.interrupted()) result.exit_code = kExitInterrupted;
  return result;
}

}  // namespace leeway
