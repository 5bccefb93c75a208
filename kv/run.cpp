#include "kv/run.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "actors/job.hpp"
#include "core/text.hpp"
#include "kv/shared_store.hpp"
#include "kv/store_plan.hpp"
#include "kv/table.hpp"
#include "runtime/checkpoints.hpp"
#include "runtime/user_run.hpp"

namespace leeway::kv {
namespace {

/// The loops of all workers in this process. In a simulation one runs at a time.
class LoopGroup final : public UserLoops, private StoreSite {
 public:
  LoopGroup(const Loop& loop, const Options& options, bool simulated)
      : loop_(loop), options_(options), simulated_(simulated) {}

  /// Runs each loop until its first iteration. Throws what a loop throws.
  void gather() {
    for (std::uint32_t worker = 0; worker < options_.workers; ++worker) {
      start(add(WorkerId(worker)));
      if (simulated_) wait_for_declarations(worker + 1);
    }
    wait_for_declarations(options_.workers);
    rethrow();
    for (std::uint32_t worker = 1; worker < options_.workers; ++worker)
      require_same(WorkerId(worker), running_[worker].declared);
  }

  Plan plan() const { return store_plan(running_.front().declared, options_); }
  const std::vector<Blob>& values() const { return running_.front().declared.values; }

  /// Ends all loops, waits for their threads, and lets go of the job.
  void end(const std::string& why) {
    for (Running& running : running_) {
      running.loop->end(UserLoop::End::run, why);
      if (simulated_) join(running);
    }
    for (Running& running : running_) join(running);
    std::lock_guard lock(mutex_);
    job_.reset();
  }
  void rethrow() {
    std::lock_guard lock(mutex_);
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  /// One call of the loop.
  struct Running {
    WorkerId worker;
    std::shared_ptr<UserLoop> loop;
    std::thread thread;
    bool has_declared = false;  // or has ended before
    Declarations declared;      // only worker 0 has values
  };

  Running& add(WorkerId worker, bool again = false) {
    std::lock_guard lock(mutex_);
    Running& running = running_.emplace_back();
    running.worker = worker;
    std::function<void()> start;
    if (again) start = [this, &running] { this->start(running); };
    running.loop = std::make_shared<UserLoop>(simulated_, std::move(start));
    return running;
  }

  void start(Running& running) {
    running.thread = std::thread([this, &running] { run(running); });
  }
  static void join(Running& running) {
    if (running.thread.joinable()) running.thread.join();
  }
  void wait_for_declarations(std::size_t workers) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      return std::all_of(running_.begin(), running_.begin() + workers,
                         [](const Running& running) { return running.has_declared; });
    });
  }

  void run(Running& running) {
    StoreSite& site = *this;
    auto state = std::make_unique<SharedStore>(site, running.worker, running.loop);
    SharedStore& of_store = *state;
    try {
      Store store(std::move(state));
      loop_(store);
      if (of_store.is_abandoned())
        running.loop->end(UserLoop::End::worker, "its loop was abandoned");
      else
        of_store.close();
    } catch (const Ended&) {
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (!thrown_) thrown_ = std::current_exception();
      running.loop->end(UserLoop::End::worker, "its loop has thrown an exception");
    }
    {
      std::lock_guard lock(mutex_);
      running.has_declared = true;
      changed_.notify_all();
    }
    running.loop->finished();
  }

  // UserLoops
  std::shared_ptr<UserLoop> begin(const std::shared_ptr<const Job>& job, WorkerId worker,
                                  std::uint32_t launch) override {
    {
      std::lock_guard lock(mutex_);
      job_ = job;
      if (launch == 1) return running_[worker.value()].loop;
    }
    return add(worker, true).loop;
  }

  // StoreSite
  std::uint32_t workers() const override { return options_.workers; }
  std::shared_ptr<const Job> job() const override {
    std::lock_guard lock(mutex_);
    return job_;
  }
  bool has_samples() const override { return options_.samples > 0; }
  Duration compute_time(std::int64_t samples) const override {
    if (!simulated_) return {};
    if (options_.samples == 0) return options_.iteration_time;
    return {options_.iteration_time.ns * samples / options_.batch};
  }
  void declared(WorkerId worker, const Declarations& declarations) override {
    std::lock_guard lock(mutex_);
    // Of one worker, only the latest has not declared its keys.
    const auto running = std::find_if(running_.rbegin(), running_.rend(),
                                      [&](const Running& one) { return one.worker == worker; });
    running->declared = {declarations.keys, {}, declarations.optimizer};
    if (worker == WorkerId(0) && running->loop == running_.front().loop)
      running->declared.values = declarations.values;
    running->has_declared = true;
    changed_.notify_all();
    if (job_) require_same(worker, declarations);  // it was started again
  }

  /// Throws unless a worker's keys are those of worker 0.
  void require_same(WorkerId worker, const Declarations& found) const {
    const std::string why = difference(running_.front().declared.keys, found.keys, "worker 0");
    if (!why.empty())
      throw StoreError(
          concat("worker ", worker, ' ', why, "; all workers initialise the same keys"));
  }

  const Loop& loop_;
  const Options& options_;
  const bool simulated_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Running> running_;  // the first of each worker in order, then those started again
  std::shared_ptr<const Job> job_;
  std::exception_ptr thrown_;
};

/// Ends the loops of a group, however the run ends.
struct EndOfGroup {
  LoopGroup& group;
  ~EndOfGroup() { group.end("the run is over"); }
};

/// Refuses options of a run that do not fit loops in this process.
void check(const RunOptions& options) {
  if (options.cluster)
    throw StoreError("the loops run in this process; leave RunOptions::cluster empty");
  if (options.check_determinism)
    throw StoreError(
        "a loop runs once; call simulate() twice and compare Result::protocol_hash instead of "
        "RunOptions::check_determinism");
  if (options.user_run) throw StoreError("RunOptions::user_run is set by kv::run()");
}

Result run(const Loop& loop, const Options& options, bool simulated) {
  check(options.run);
  register_tables();
  const auto group = std::make_shared<LoopGroup>(loop, options, simulated);
  const EndOfGroup end{*group};
  group->gather();
  Plan plan = group->plan();
  if (simulated) plan.simulated = options.world;
  RunOptions run_options = options.run;
  std::vector<Blob> values = group->values();
  if (!run_options.resume.empty()) {
    const auto from = find_checkpoint(run_options.resume, plan.name);
    if (!from) throw StoreError(concat("RunOptions::resume: ", from.error().text));
    run_options.resume = from->path();
    continue_samples(plan, from->plan);
    values.clear();  // the checkpoint has them
  }
  run_options.user_run =
      std::make_shared<UserRun>(UserRun{.loops = group, .initial_weights = std::move(values)});
  Result result = leeway::run(plan, run_options);
  group->end(result.error.empty() ? "the run is over" : result.error);
  group->rethrow();
  return result;
}

}  // namespace

Result run(const Loop& loop, const Options& options) {
  return run(loop, options, false);
}

Result simulate(const Loop& loop, const Options& options) {
  return run(loop, options, true);
}

Duration computing_time(const Result& result) {
  WorkerTotals all;
  for (const WorkerTotals& worker : result.totals.workers) add_work(all, worker);
  if (all.samples == 0) return {};
  return {all.compute.ns / static_cast<std::int64_t>(all.samples) * result.plan.batch};
}

}  // namespace leeway::kv
