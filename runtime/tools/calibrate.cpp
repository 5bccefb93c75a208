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
#include "runtime/tools/metered_role.hpp"
#include "sim/chance.hpp"
#include "sim/cold_cache_penalty.hpp"

namespace leeway {
namespace {

using SteadyClock = std::chrono::steady_clock;

double seconds_since(SteadyClock::time_point began) {
  return std::chrono::duration<double>(SteadyClock::now() - began).count();
}

/// Lets the caller wait until something has happened on another thread.
class Done {
 public:
  void tell() {
    std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }
  /// False when it has not happened within so long.
  bool wait(std::chrono::seconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [&] { return done_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
};

class CalibrationEnd final : public Audience {
 public:
  void ended(const RunTotals& totals) override {
    error_ = totals.end.reason == msg::RunEnded::Reason::failed ? totals.end.text : "";
    done_.tell();
  }
  /// Why the run failed; empty when it did not.
  std::string wait() {
    if (!done_.wait(std::chrono::minutes(10))) return "a run did not end";
    return error_;
  }

 private:
  std::string error_;
  Done done_;
};

/// The mean, without what is far out of the way: somebody else's doing.
double mean(const std::vector<double>& values, double median) {
  constexpr double kFar = 4;
  double sum = 0, count = 0;
  for (const double value : values) {
    if (value > kFar * median) continue;
    sum += value;
    ++count;
  }
  return sum / std::max(count, 1.0);
}

/// The value that a share of all lie below.
double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

// ---- the plan's own actors ----

/// What the actors of a run have done.
struct Watched {
  std::deque<Ledger> workers, shards, others;
  double processor_seconds = 0;

  /// What a message takes, with all that is not computing.
  double seconds_per_message() const {
    double seconds = processor_seconds, messages = 0;
    for (const auto* group : {&workers, &shards, &others})
      for (const Ledger& ledger : *group) {
        messages += static_cast<double>(ledger.messages);
        for (const auto& part : ledger.parts) seconds -= part.seconds;
      }
    return seconds / std::max(messages, 1.0);
  }
};

/// `rests`: worker 0 rests after each part of a step, for kRest times as long as that took, and the
/// others wait for it.
constexpr double kRest = 3;
Plan plan_to_watch(Plan plan, std::uint32_t workers, double seconds, bool rests = false) {
  plan.workers = workers;
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

/// Runs the plan on threads.
Expected<Watched> watch(const Plan& plan, const TrainTest& data) {
  if (const auto valid = validate(plan); !valid) return valid.error();
  const auto made = make_job(plan, data);
  if (!made) return made.error();
  const auto& job = *made;
  Watched watched;
  CalibrationEnd ending;
  std::string error;
  const double began = process_seconds();
  {
    LocalHost host({.seed = plan.seed, .stragglers = plan.stragglers});
    const auto add = [&](Address address, std::shared_ptr<Role> role, std::deque<Ledger>& ledgers) {
      const bool own_thread = address.kind == RoleKind::worker;
      host.add(address,
               std::make_shared<MeteredRole>(std::move(role), ledgers.emplace_back(), own_thread));
    };
    add(kMonitor, std::make_shared<Monitor>(job, std::vector<Audience*>{&ending}), watched.others);
    add(kScheduler, std::make_shared<Scheduler>(job), watched.others);
    for (std::uint32_t i = 0; i < plan.shards; ++i)
      add(address_of(ShardId(i)), std::make_shared<Shard>(job, ShardId(i)), watched.shards);
    for (std::uint32_t i = 0; i < plan.workers; ++i)
      add(address_of(WorkerId(i)), make_participant(job, WorkerId(i)), watched.workers);
    host.start();
    error = ending.wait();
  }
  if (!error.empty()) return Error{concat("the plan cannot be measured: ", error)};
  watched.processor_seconds = process_seconds() - began;
  return watched;
}

/// Nanoseconds of each whole step of a worker for one of its floating-point operations, after the
/// first ones.
void add_times_of_steps(const Ledger& worker, std::vector<double>& times) {
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

std::vector<double> times_of_steps(const Watched& watched) {
  std::vector<double> times;
  for (const Ledger& worker : watched.workers) add_times_of_steps(worker, times);
  return times;
}

/// By how much what comes after a long rest is slower, from the steps of worker 0, which rests, and
/// what they take if it does not.
double coldness(double usual, const Watched& resting) {
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
  add_times_of_steps(worker, times);
  if (times.empty() || cold <= 0) return 0;
  const double slower = mean(times, quantile(times, 0.5)) / usual - 1;
  return std::max(slower, 0.0) * all / cold;
}

/// Bytes a second of the larger updates: what is little takes its time elsewhere.
double bytes_per_second(const Watched& watched) {
  std::int64_t most = 0;
  for (const Ledger& ledger : watched.shards)
    for (const auto& part : ledger.parts) most = std::max(most, part.cost.bytes);
  std::vector<double> times;
  for (const Ledger& ledger : watched.shards)
    for (const auto& part : ledger.parts)
      if (part.cost.bytes > 0 && part.cost.bytes >= most / 2)
        times.push_back(part.seconds / static_cast<double>(part.cost.bytes));
  return times.empty() ? 0 : 1 / std::max(mean(times, quantile(times, 0.5)), 1e-18);
}

// ---- messages, timers, cores ----

/// Is busy for a while when it is sent something, so that the other falls asleep, and sends it
/// back.
class Echo final : public Role {
 public:
  Echo(Address other, std::atomic<std::int64_t>& sent, std::vector<double>& took, Done& done)
      : other_(other), sent_(sent), took_(took), done_(done) {}
  void on_message(Address from, const Message&, Outbox& out) override {
    constexpr std::size_t kCount = 500;
    constexpr Duration kBusy = milliseconds(1);
    const Instant began = out.now();
    if (from == other_) took_.push_back((began - Instant{sent_}).seconds());
    if (took_.size() == kCount) return done_.tell();
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

/// Seconds until a message has woken an actor, those included in which a core was at work on it.
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

/// Rings a timer again and again, and notes how late it is.
class Ringing final : public Role {
 public:
  Ringing(std::vector<double>& late, Done& done) : late_(late), done_(done) {}
  void on_start(Outbox& out) override { ring(out); }
  void on_message(Address, const Message&, Outbox&) override {}
  void on_timer(TimerToken, Outbox& out) override {
    constexpr std::size_t kCount = 300;
    late_.push_back((out.now() - due_).seconds());
    if (late_.size() == kCount) return done_.tell();
    ring(out);
  }

 private:
  void ring(Outbox& out) {
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
    host.add(address_of(WorkerId(0)), std::make_shared<Ringing>(late, done));
    host.start();
    done.wait(std::chrono::seconds(60));
  }
  return late.empty() ? 0 : quantile(late, 0.5);
}

/// How long a thread keeps its core when another wants it: the median over threads that compute,
/// two for each core.
double slice_seconds(unsigned cores) {
  constexpr double kTime = 0.6, kGap = 150e-6;  // a thread that misses so much was not running
  std::mutex slices_mutex;
  std::vector<double> slices;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 2 * cores; ++i)
    threads.emplace_back([&] {
      const auto began = SteadyClock::now();
      double since = 0;
      for (double last = 0, now = 0; last < kTime; last = now) {
        now = seconds_since(began);
        if (now - last < kGap) continue;
        std::lock_guard lock(slices_mutex);
        slices.push_back(last - since);
        since = now;
      }
    });
  for (auto& thread : threads) thread.join();
  return slices.empty() ? kTime : quantile(slices, 0.5);
}

/// Four digits: more would be made up.
double rounded(double value) {
  std::ostringstream out;
  out.precision(4);
  out << value;
  return std::stod(out.str());
}

}  // namespace

Expected<plan::World> measure_world(const Plan& plan, const TrainTest& data,
                                    const std::function<void(const std::string&)>& tell) {
  constexpr double kSeconds = 2;  // of a run
  if (plan.device != "cpu")
    return Error{concat("calibrate: measures processors, and the plan computes on \"", plan.device,
                        "\"; give --device cpu")};
  const auto say = [&](const std::string& what) {
    if (tell) tell(what);
  };
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  say("one worker");
  const auto alone = watch(plan_to_watch(plan, 1, kSeconds), data);
  if (!alone) return alone.error();
  say(concat(cores, " workers at once"));
  const auto together = watch(plan_to_watch(plan, cores, kSeconds), data);
  if (!together) return together.error();
  say("a worker that rests in between");
  const auto resting = watch(plan_to_watch(plan, cores, kSeconds, true), data);
  if (!resting) return resting.error();
  say("messages");
  const double waking = waking_seconds();
  say("timers and cores");
  const double timer = timer_seconds();
  const double slice = slice_seconds(cores);

  const auto times = times_of_steps(*alone), times_together = times_of_steps(*together);
  if (times.empty() || times_together.empty())
    return Error{
        concat("calibrate: no step was done within ", kSeconds, " s; give a smaller --batch")};
  const double median = quantile(times, 0.5), time = mean(times, median);
  const double message = together->seconds_per_message();
  plan::World world;
  world.nodes = plan::World::Nodes::one;
  world.cores = cores;
  world.speed = rounded(1 / std::max(time, 1e-9));
  // Between the quartiles lies half of what is spread evenly, as the simulated noise is.
  world.noise = rounded(
      std::clamp((quantile(times, 0.75) - quantile(times, 0.25)) / std::max(time, 1e-9), 0.0, 0.9));
  if (cores > 1) world.contention = rounded(std::max(mean(times_together, median) / time - 1, 0.0));
  world.cold = rounded(coldness(time, *resting));
  // With several workers, as in most plans: somebody else holds the weights, and so an update does
  // not go in place.
  world.memory =
      rounded(std::max(bytes_per_second(*together) * (1 + world.contention) * 1e-9, 1e-6));
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
