#include "runtime/tools/calibrate.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <fstream>
#include <iostream>
#include <mutex>
#include <sstream>
#include <thread>

#include "actors/monitor/monitor.hpp"
#include "actors/scheduler/scheduler.hpp"
#include "actors/shard/shard.hpp"
#include "actors/worker/participant.hpp"
#include "cluster/local_host.hpp"
#include "core/text.hpp"
#include "models/datasets/load.hpp"
#include "runtime/tools/calibration_age.hpp"
#include "runtime/tools/metered_role.hpp"
#include "sim/chance.hpp"
#include "sim/cold_cache_penalty.hpp"

namespace leeway {
namespace {

using SteadyClock = std::chrono::steady_clock;

double seconds_since(SteadyClock::time_point began) {
  return std::chrono::duration<double>(SteadyClock::now() - began).count();
}

/// Lets a thread wait for an event on another thread.
class Done {
 public:
  void notify() {
    std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }
  /// Returns false on timeout.
  bool wait(std::chrono::seconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [&] { return done_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
};

class EndListener final : public Audience {
 public:
  void ended(const RunTotals& totals) override {
    error_ = totals.end.reason == msg::RunEnded::Reason::failed ? totals.end.text : "";
    done_.notify();
  }
  /// Waits for the end. Returns the error of the run; empty on success.
  std::string wait() {
    if (!done_.wait(std::chrono::minutes(10))) return "the run did not end within 10 minutes";
    return error_;
  }

 private:
  std::string error_;
  Done done_;
};

/// The mean without outliers, which other programs of the machine cause.
double mean(const std::vector<double>& values, double median) {
  constexpr double kOutlier = 4;
  double sum = 0, count = 0;
  for (const double value : values) {
    if (value > kOutlier * median) continue;
    sum += value;
    ++count;
  }
  return sum / std::max(count, 1.0);
}

/// The value below which this share of the values lies.
double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

// ---- the actors of the plan ----

/// The work of the actors in a run.
struct Measurements {
  std::deque<Ledger> workers, shards, others;
  double cpu_seconds = 0;

  /// CPU time per message: all time outside of computations.
  double seconds_per_message() const {
    double seconds = cpu_seconds, messages = 0;
    for (const auto* group : {&workers, &shards, &others})
      for (const Ledger& ledger : *group) {
        messages += static_cast<double>(ledger.messages);
        for (const auto& part : ledger.parts) seconds -= part.seconds;
      }
    return seconds / std::max(messages, 1.0);
  }
};

/// `rests`: worker 0 pauses after each part of a step, for kRest times as long as the part took,
/// and the other workers wait for it.
constexpr double kRest = 3;
Plan plan_to_measure(Plan plan, std::uint32_t workers, double seconds, bool rests = false) {
  plan.workers = workers;
  plan.pipeline = {};  // each worker trains the whole model
  plan.aggregate = plan::NoGroups{};
  plan.consistency = plan::Asp{};
  plan.balance = plan::Balance::equal;
  plan.faults.clear();
  plan.stop = {.epochs = 0, .seconds = seconds};
  plan.lr_schedule = {};
  plan.evaluate_every = 0;
  plan.simulated.reset();
  plan.stragglers.clear();
  if (rests) {
    plan.consistency = plan::Bsp{};
    plan.stragglers = {{.worker = 0, .kind = plan::ConstantFactor{1 + kRest}}};
  }
  return plan;
}

/// Runs the plan on threads and measures its actors.
Expected<Measurements> measure_run(const Plan& plan, const TrainTest& data) {
  if (const auto valid = validate(plan); !valid) return valid.error();
  const auto made = make_job(plan, data);
  if (!made) return made.error();
  const auto& job = *made;
  Measurements measurements;
  EndListener listener;
  std::string error;
  const double began = process_seconds();
  {
    LocalHost host({.seed = plan.seed, .stragglers = plan.stragglers});
    const auto add = [&](Address address, std::shared_ptr<Role> role, std::deque<Ledger>& ledgers) {
      const bool own_thread = address.kind == RoleKind::worker;
      host.add(address,
               std::make_shared<MeteredRole>(std::move(role), ledgers.emplace_back(), own_thread));
    };
    add(kMonitor, std::make_shared<Monitor>(job, std::vector<Audience*>{&listener}),
        measurements.others);
    add(kScheduler, std::make_shared<Scheduler>(job), measurements.others);
    for (std::uint32_t i = 0; i < plan.shards; ++i)
      add(address_of(ShardId(i)), std::make_shared<Shard>(job, ShardId(i)), measurements.shards);
    for (std::uint32_t i = 0; i < plan.workers; ++i)
      add(address_of(WorkerId(i)), make_participant(job, WorkerId(i)), measurements.workers);
    host.start();
    error = listener.wait();
  }
  if (!error.empty()) return Error{concat("the plan cannot be measured: ", error)};
  measurements.cpu_seconds = process_seconds() - began;
  return measurements;
}

/// Adds the nanoseconds per floating-point operation of each step of a worker, after a warm-up.
void add_step_times(const Ledger& worker, std::vector<double>& times) {
  constexpr std::size_t kWarmUp = 5;
  std::vector<double> of_worker;
  double seconds = 0, flops = 0;
  for (const auto& part : worker.parts) {
    if (part.part == 0 && flops > 0) {
      of_worker.push_back(seconds / flops * 1e9);
      seconds = flops = 0;
    }
    seconds += part.seconds;
    flops += static_cast<double>(part.cost.flops);
  }
  if (flops > 0) of_worker.push_back(seconds / flops * 1e9);
  const std::size_t skip = of_worker.size() > 4 * kWarmUp ? kWarmUp : 0;
  times.insert(times.end(), of_worker.begin() + static_cast<std::ptrdiff_t>(skip), of_worker.end());
}

std::vector<double> step_times(const Measurements& measurements) {
  std::vector<double> times;
  for (const Ledger& worker : measurements.workers) add_step_times(worker, times);
  return times;
}

/// The relative slowdown of work after a long rest. `usual`: the time of a step without rests;
/// worker 0 of `resting` rests.
double cold_penalty(double usual, const Measurements& resting) {
  const Ledger& worker = resting.workers.front();
  double all = 0, cold = 0;
  sim::ColdCachePenalty penalty;
  for (const auto& part : worker.parts) {
    const auto time = nanoseconds(static_cast<std::int64_t>(part.seconds * 1e9));
    all += part.seconds;
    cold += part.seconds * penalty.work(time);
    penalty.rest(sim::scaled(time, kRest));
  }
  std::vector<double> times;
  add_step_times(worker, times);
  if (times.empty() || cold <= 0) return 0;
  const double slower = mean(times, quantile(times, 0.5)) / usual - 1;
  return std::max(slower, 0.0) * all / cold;
}

/// Bytes per second of the larger updates; small updates are dominated by other costs.
double bytes_per_second(const Measurements& measurements) {
  std::int64_t largest = 0;
  for (const Ledger& ledger : measurements.shards)
    for (const auto& part : ledger.parts) largest = std::max(largest, part.cost.bytes);
  std::vector<double> times;
  for (const Ledger& ledger : measurements.shards)
    for (const auto& part : ledger.parts)
      if (part.cost.bytes > 0 && part.cost.bytes >= largest / 2)
        times.push_back(part.seconds / static_cast<double>(part.cost.bytes));
  return times.empty() ? 0 : 1 / std::max(mean(times, quantile(times, 0.5)), 1e-18);
}

// ---- messages, timers, cores ----

/// Answers each message after 1 ms of busy work, in which the other actor's thread falls asleep.
class Echo final : public Role {
 public:
  Echo(Address other, std::atomic<std::int64_t>& sent, std::vector<double>& took, Done& done)
      : other_(other), sent_(sent), took_(took), done_(done) {}
  void on_message(Address from, const Message&, Outbox& out) override {
    constexpr std::size_t kCount = 500;
    constexpr Duration kBusy = milliseconds(1);
    const Instant began = out.now();
    if (from == other_) took_.push_back((began - Instant{sent_}).seconds());
    if (took_.size() == kCount) return done_.notify();
    while (out.now() - began < kBusy) {
    }
    sent_ = out.now().ns;
    out.send(other_, Message());
  }

 private:
  Address other_;
  std::atomic<std::int64_t>& sent_;
  std::vector<double>& took_;
  Done& done_;
};

/// Seconds until a message has woken an actor, including CPU time.
double waking_seconds() {
  const Address worker = address_of(WorkerId(0)), shard = address_of(ShardId(0));
  std::atomic<std::int64_t> sent = 0;
  std::vector<double> took, took_back;
  Done done;
  {
    LocalHost host({});
    host.add(worker, std::make_shared<Echo>(shard, sent, took_back, done));
    host.add(shard, std::make_shared<Echo>(worker, sent, took, done));
    host.start();
    host.send(worker, Message());
    done.wait(std::chrono::seconds(60));
  }
  took.insert(took.end(), took_back.begin(), took_back.end());
  return took.empty() ? 0 : mean(took, quantile(took, 0.5));
}

/// Starts a timer repeatedly and records its delays.
class TimerProbe final : public Role {
 public:
  TimerProbe(std::vector<double>& late, Done& done) : late_(late), done_(done) {}
  void on_start(Outbox& out) override { start_timer(out); }
  void on_message(Address, const Message&, Outbox&) override {}
  void on_timer(TimerToken, Outbox& out) override {
    constexpr std::size_t kCount = 300;
    late_.push_back((out.now() - due_).seconds());
    if (late_.size() == kCount) return done_.notify();
    start_timer(out);
  }

 private:
  void start_timer(Outbox& out) {
    const Duration delay = milliseconds(1);
    due_ = out.now() + delay;
    out.after(delay, 0);
  }
  std::vector<double>& late_;
  Done& done_;
  Instant due_;
};

double timer_seconds() {
  std::vector<double> late;
  Done done;
  {
    LocalHost host({});
    host.add(address_of(WorkerId(0)), std::make_shared<TimerProbe>(late, done));
    host.start();
    done.wait(std::chrono::seconds(60));
  }
  return late.empty() ? 0 : quantile(late, 0.5);
}

/// The time for which a thread keeps its core while another thread is ready: the median over busy
/// threads, two per core.
double slice_seconds(unsigned cores) {
  constexpr double kTime = 0.6, kGap = 150e-6;  // a longer gap means that the thread did not run
  std::mutex mutex;
  std::vector<double> slices;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 2 * cores; ++i)
    threads.emplace_back([&] {
      const auto began = SteadyClock::now();
      double since = 0;
      for (double last = 0, now = 0; last < kTime; last = now) {
        now = seconds_since(began);
        if (now - last < kGap) continue;
        std::lock_guard lock(mutex);
        slices.push_back(last - since);
        since = now;
      }
    });
  for (auto& thread : threads) thread.join();
  return slices.empty() ? kTime : quantile(slices, 0.5);
}

/// Rounds to four digits, the accuracy of the measurements.
double rounded(double value) {
  std::ostringstream out;
  out.precision(4);
  out << value;
  return std::stod(out.str());
}

}  // namespace

Expected<plan::World> measure_world(const Plan& plan, const TrainTest& data,
                                    const std::function<void(const std::string&)>& report) {
  constexpr double kSeconds = 2;  // per run
  if (plan.device != "cpu")
    return Error{concat("calibrate: measures only CPUs, but the plan computes on \"", plan.device,
                        "\"; give --device cpu")};
  const auto say = [&](const std::string& what) {
    if (report) report(what);
  };
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  plan::World world;
  say("one core");
  note_origin(world, origin_of(plan, data.train->sample_shape()));
  say("one worker");
  const auto single = measure_run(plan_to_measure(plan, 1, kSeconds), data);
  if (!single) return single.error();
  say(concat(cores, " workers"));
  const auto parallel = measure_run(plan_to_measure(plan, cores, kSeconds), data);
  if (!parallel) return parallel.error();
  say("a worker that pauses");
  const auto resting = measure_run(plan_to_measure(plan, cores, kSeconds, true), data);
  if (!resting) return resting.error();
  say("messages");
  const double waking = waking_seconds();
  say("timers and cores");
  const double timer = timer_seconds();
  const double slice = slice_seconds(cores);

  const auto times = step_times(*single), parallel_times = step_times(*parallel);
  if (times.empty() || parallel_times.empty())
    return Error{
        concat("calibrate: no step finished within ", kSeconds, " s; give a smaller --batch")};
  const double median = quantile(times, 0.5), time = mean(times, median);
  const double message = parallel->seconds_per_message();
  world.nodes = plan::World::Nodes::one;
  world.cores = cores;
  world.speed = rounded(1 / std::max(time, 1e-9));
  // The simulated noise is uniform, and the quartiles of a uniform distribution span half of it.
  world.noise = rounded(
      std::clamp((quantile(times, 0.75) - quantile(times, 0.25)) / std::max(time, 1e-9), 0.0, 0.9));
  if (cores > 1) world.contention = rounded(std::max(mean(parallel_times, median) / time - 1, 0.0));
  world.cold = rounded(cold_penalty(time, *resting));
  // From several workers, as in most plans: they hold the weights, so updates are not in place.
  world.memory =
      rounded(std::max(bytes_per_second(*parallel) * (1 + world.contention) * 1e-9, 1e-6));
  world.message_us = rounded(message * 1e6);
  world.timer_us = rounded(std::max(timer - message, 0.0) * 1e6);
  world.slice_us = rounded(slice * 1e6);
  world.local_latency_us = rounded(std::max(waking - message, 0.0) * 1e6);
  world.jitter = 0;
  return world;
}

int calibrate(const Plan& plan, const std::string& path) {
  const auto refuse = [&](const std::string& text, int code) {
    std::cerr << plan.name << ": " << text << '\n';
    return code;
  };
  if (!path.ends_with(".toml"))
    return refuse(concat("--calibrate: \"", path, "\" does not end in .toml; give world.toml"), 2);
  const auto data = load_data(plan.data, plan.seed);
  if (!data) return refuse(data.error().text, 2);
  const auto world = measure_world(
      plan, *data, [](const std::string& what) { std::cerr << "measuring: " << what << '\n'; });
  if (!world) return refuse(world.error().text, 2);
  std::ofstream file(path);
  file << "# This machine, as measured with the model of " << plan.name << ", batch " << plan.batch
       << ", " << plan.shards << " shards.\n"
       << to_toml(*world);
  file.close();
  if (!file)
    return refuse(concat("--calibrate: ", path, " cannot be written; check the folder"), 1);
  std::cout << to_toml(*world) << "\nWritten to " << path << "; --world @" << path
            << " simulates this machine.\n";
  return 0;
}

}  // namespace leeway
