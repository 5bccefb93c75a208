#include <chrono>
#include <cmath>
#include <condition_variable>
#include <iostream>
#include <mutex>

#include "actors/scheduler.hpp"
#include "actors/shard.hpp"
#include "actors/worker.hpp"
#include "cluster/local_faults.hpp"
#include "core/text.hpp"
#include "messages/faults.hpp"
#include "monitoring/event_log.hpp"
#include "monitoring/format.hpp"
#include "monitoring/profile_table.hpp"
#include "monitoring/progress_line.hpp"
#include "monitoring/run_folder.hpp"
#include "monitoring/summary.hpp"
#include "policies/straggler/straggler.hpp"
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

/// Whole tensors from blocks.
std::vector<NamedTensor> assemble(const Job& job, const std::vector<Blob>& blocks) {
  std::vector<NamedTensor> tensors;
  if (blocks.empty()) return tensors;
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
  return tensors;
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
  result.torn_pushes = totals.end.torn_pushes;
  result.late_pushes = totals.end.late_pushes;
  result.seed = job.plan.seed;
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
  } else if (totals.end.reason == msg::RunEnded::Reason::interrupted) {
    result.exit_code = 130;
  }
  result.totals = std::move(totals);
}

/// What a profile compares with: the processor, unless a GPU had a part in it.
std::optional<kernels::Peak> peak_of(const Job& job) {
  if (!job.devices.cpu_only()) return std::nullopt;
  return kernels::measure_peak();
}

/// Passes an interrupt on, once.
template <class Host>
class Interrupts {
 public:
  explicit Interrupts(Host& host) : host_(host) {}
  void look() {
    if (told_ || !guard_.interrupted()) return;
    host_.send(kScheduler, encode({.body = msg::Interrupt{}}));
    told_ = true;
  }

 private:
  Host& host_;
  const InterruptGuard guard_;
  bool told_ = false;
};

using OnEvent = std::function<void(Address, Instant, const Event&)>;

void add_roles(LocalHost& host, const std::shared_ptr<const Job>& job,
               const std::vector<Audience*>& audience) {
  host.add(kMonitor, std::make_shared<Monitor>(job, audience));
  host.add(kScheduler, std::make_shared<Scheduler>(job));
  for (std::uint32_t i = 0; i < job->plan.shards; ++i)
    host.add(address_of(ShardId(i)), std::make_shared<Shard>(job, ShardId(i)));
  for (std::uint32_t i = 0; i < job->plan.workers; ++i) {
    const Address address = address_of(WorkerId(i));
    host.add(address, joins_later(job->faults, address)
                          ? nullptr
                          : std::make_shared<Worker>(job, WorkerId(i)));
  }
}

void run_here(const std::shared_ptr<const Job>& job, OnEvent on_event,
              const std::vector<Audience*>& audience, Ending& ending, Result& result) {
  LocalFaults faults(job->faults, [&](Address address, std::uint32_t life) {
    return std::make_shared<Worker>(job, WorkerId(address.index), life);
  });
  OnEvent everybody = on_event;
  if (!job->faults.empty())
    everybody = [&](Address actor, Instant at, const Event& event) {
      if (on_event) on_event(actor, at, event);
      faults.on_event(actor, event);
    };
  LocalHost host({.seed = job->plan.seed,
                  .stragglers = job->plan.stragglers,
                  .on_event = std::move(everybody)});
  /// The host ends before the faults do, whatever is thrown.
  struct Stop {
    LocalFaults& faults;
    ~Stop() { faults.stop(); }
  } stop{faults};
  add_roles(host, job, audience);
  host.start();
  faults.start(host);
  Interrupts interrupts(host);
  while (!ending.wait(std::chrono::milliseconds(20))) {
    interrupts.look();
    const auto reason = host.end_reason(kMonitor);
    if (reason.empty()) continue;
    result.exit_code = 1;
    result.error = concat("the monitor ended: ", reason);
    break;
  }
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
  for (const auto& tensor : weights)
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
  const auto made = make_job(plan, std::move(*data), {.profile = profile});
  if (!made) return refused(made.error().text);
  const auto& job = *made;
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
  {
    OnEvent on_event;
    if (events)
      on_event = [&](Address actor, Instant at, const Event& event) {
        events->write(actor, at, event);
      };
    if (plan.simulated) {
      run_simulated(job, std::move(on_event), audience, result);
    } else {
      run_here(job, std::move(on_event), audience, ending, result);
    }
  }
  if (!result.error.empty()) return result;
  fill(result, *job, ending.take_totals());
  result.history = ending.take_history();
  if (folder) {
    result.folder = options.folder;
    const auto saved =
        folder->finish(result_json(*job, result.totals), result.weights, result.history);
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
  return result;
}

}  // namespace leeway
