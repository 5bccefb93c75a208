#include "kv/run.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "actors/job.hpp"
#include "core/check.hpp"
#include "core/limits.hpp"
#include "core/text.hpp"
#include "kv/store_state.hpp"
#include "kv/table.hpp"
#include "runtime/user_run.hpp"
#include "runtime/words.hpp"

namespace leeway::kv {
namespace {

/// For a run whose loops decide when it ends: iterations of a worker in an epoch, and epochs. No
/// run needs more.
constexpr std::int64_t kEpochIterations = std::int64_t{1} << 18;
constexpr double kManyEpochs = 1e9;

/// As many shards as wanted, if each gets a block.
std::uint32_t shards_for(const std::vector<plan::Layer>& layers, std::uint32_t wanted) {
  const auto model =
      Model::build(layers, plan::Loss::mean_squared_error, Shape{1}, 0, /*target_count=*/1);
  if (!model) throw StoreError(model.error().text);
  for (std::uint32_t shards = wanted; shards > 1; --shards) {
    const Layout layout = balanced_layout(**model, shards);
    bool each = true;
    for (std::uint32_t shard = 0; shard < shards; ++shard)
      each = each && !layout.blocks_of(ShardId(shard)).empty();
    if (each) return shards;
  }
  return 1;
}

/// The loops of all workers in this process.
class LoopGroup final : public UserLoops, private StoreSite {
 public:
  LoopGroup(const Loop& loop, const Options& options) : loop_(loop), options_(options) {}
  ~LoopGroup() override { end_loops("the run is over"); }

  /// Runs each loop until its first iteration, one after the other. Throws what a loop throws.
  void gather() {
    for (std::uint32_t worker = 0; worker < options_.workers; ++worker) {
      Running& running = add(WorkerId(worker));
      start(running);
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return running.has_declared; });
      if (thrown_) break;
    }
    rethrow();
  }

  /// The loops' table and optimizer, with the options' settings.
  Plan plan() const {
    Plan plan;
    plan.name = "kv";
    plan.seed = options_.seed;
    auto layers = table_layers(first_.keys);
    if (!layers) throw StoreError(layers.error().text);
    plan.model = std::move(*layers);
    plan.loss = plan::Loss::mean_squared_error;
    plan.optimizer = first_.optimizer.value_or(sum_gradients());
    plan.consistency = options_.consistency;
    plan.workers = options_.workers;
    plan.shards = shards_for(plan.model, options_.shards);
    plan.replicas = options_.replicas;
    const bool counted = options_.samples > 0;
    // An epoch of whole rounds: otherwise some workers would skip its last iteration.
    plan.data = numbered_samples(counted ? options_.samples : kEpochIterations * options_.workers);
    plan.batch = counted ? options_.batch : 1;
    plan.stop.epochs = counted ? options_.epochs : kManyEpochs;
    plan.evaluate_every = 0;
    plan.checkpoints.every = plan::Never{};
    plan.stragglers = options_.stragglers;
    plan.faults = options_.faults;
    return plan;
  }
  const std::vector<Blob>& values() const { return first_.values; }

  /// Ends all loops, and waits for their threads.
  void end_loops(const std::string& why) {
    {
      std::lock_guard lock(mutex_);
      for (Running& running : running_) running.loop->end(why);
    }
    for (Running& running : running_)
      if (running.thread.joinable()) running.thread.join();
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
    bool has_declared = false;
    std::thread thread;
  };

  Running& add(WorkerId worker) {
    std::lock_guard lock(mutex_);
    return running_.emplace_back(Running{worker, std::make_shared<UserLoop>()});
  }

  void start(Running& running) {
    running.thread = std::thread([this, &running] { run(running); });
  }

  void run(Running& running) {
    {
      StoreSite& site = *this;
      Store store(std::make_unique<StoreState>(site, running.worker, running.loop));
      try {
        loop_(store);
      } catch (const Ended&) {
      } catch (...) {
        std::lock_guard lock(mutex_);
        if (!thrown_) thrown_ = std::current_exception();
        running.loop->end("its loop has thrown an exception");
      }
    }
    std::lock_guard lock(mutex_);
    running.has_declared = true;
    changed_.notify_all();
  }

  // UserLoops
  std::shared_ptr<UserLoop> begin(const std::shared_ptr<const Job>& job, WorkerId worker,
                                  std::uint32_t launch) override {
    {
      std::lock_guard lock(mutex_);
      job_ = job;
      if (launch == 1) return running_[worker.value()].loop;
    }
    Running& again = add(worker);
    again.loop->set_start([this, &again] { start(again); });
    return again.loop;
  }

  // StoreSite
  std::uint32_t workers() const override { return options_.workers; }
  std::shared_ptr<const Job> job() const override {
    std::lock_guard lock(mutex_);
    return job_;
  }
  void declared(WorkerId worker, const Declarations& declarations) override {
    std::lock_guard lock(mutex_);
    if (!has_first_) {
      first_ = declarations;
      has_first_ = true;
    }
    for (Running& running : running_)
      if (running.worker == worker) running.has_declared = true;
    changed_.notify_all();
    if (const std::string why = difference(declarations); !why.empty())
      throw StoreError(
          concat("worker ", worker, ' ', why, "; all workers initialise the same keys"));
  }

  /// How a worker's keys differ from those of the first; empty if they do not.
  std::string difference(const Declarations& found) const {
    const auto find = [](const Declarations& in, const std::string& name) {
      return std::ranges::find(in.keys, name, &TableKey::name);
    };
    for (const TableKey& key : first_.keys) {
      const auto same = find(found, key.name);
      if (same == found.keys.end())
        return concat("has not initialised key \"", key.name, "\" of worker 0");
      if (same->shape != key.shape)
        return concat("has initialised key \"", key.name, "\" with the shape ", same->shape,
                      ", worker 0 with ", key.shape);
    }
    for (const TableKey& key : found.keys)
      if (find(first_, key.name) == first_.keys.end())
        return concat("has initialised key \"", key.name, "\", worker 0 has not");
    return "";
  }

  const Loop& loop_;
  const Options& options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Running> running_;  // the first of each worker in order, then those started again
  bool has_first_ = false;
  Declarations first_;  // of worker 0
  std::shared_ptr<const Job> job_;
  std::exception_ptr thrown_;
};

Result run(const Loop& loop, const Options& options, bool simulated) {
  register_tables();
  const auto group = std::make_shared<LoopGroup>(loop, options);
  group->gather();
  Plan plan = group->plan();
  if (simulated) plan.simulated = options.world;
  RunOptions run_options = options.run;
  run_options.user_run = std::make_shared<UserRun>(UserRun{group, group->values()});
  Result result = leeway::run(plan, run_options);
  group->end_loops(result.error.empty() ? "the run is over" : result.error);
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

}  // namespace leeway::kv
