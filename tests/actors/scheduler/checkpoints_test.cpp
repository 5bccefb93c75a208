// Checkpoints: when a checkpoint is due, and how it is completed or given up.
#include "actors/scheduler/checkpoints.hpp"

#include <catch2/catch.hpp>

#include "actors/scheduler/commit_work.hpp"
#include "checkpoint/store.hpp"
#include "core/text.hpp"
#include "sim/disk.hpp"
#include "tests/support/scheduler_parts.hpp"

namespace leeway::test {
namespace {

std::shared_ptr<const Job> job_with(const Plan& plan,
                                    std::shared_ptr<const checkpoint::Store> store,
                                    std::shared_ptr<checkpoint::Checkpoint> resumed = {}) {
  auto data = load_data(plan.data, plan.seed);
  JobOptions options;
  options.checkpoints = std::move(store);
  options.resumed = std::move(resumed);
  options.run = "a run";
  return *make_job(plan, std::move(*data), std::move(options));
}

struct Disk {
  sim::SimulatedDisk files;
  std::shared_ptr<const checkpoint::Store> store =
      std::make_shared<checkpoint::Store>(files, "checkpoints");
};

/// 60 samples per epoch on two shards. Each lease is one iteration of two samples.
struct Saved : Disk, SchedulerParts {
  explicit Saved(decltype(plan::Checkpoints::every) every = plan::Never{},
                 std::shared_ptr<checkpoint::Checkpoint> resumed = {})
      : SchedulerParts(job_with(plan(every), store, std::move(resumed))) {
    set_running({0});
  }
  static Plan plan(decltype(plan::Checkpoints::every) every) {
    Plan plan = workers_plan(2);
    plan.lease_size = 2;
    plan.checkpoints.every = every;
    return plan;
  }
  void leases_iterations(int count) {
    for (int i = 0; i < count; ++i, next = next + 1) {
      REQUIRE(request_lease(0, next));
      snapshots.start_if_due(out);
    }
  }
  void request() {
    checkpoints.request();
    snapshots.start_if_due(out);
  }
  /// The checkpoint that was proposed to both shards since the last call; 0: none.
  std::uint64_t proposed() {
    const auto orders = out.take<msg::Snapshot>();
    if (orders.empty()) return 0;
    REQUIRE(orders.size() == 2);
    CHECK(orders[0].body.checkpoint == orders[1].body.checkpoint);
    snapshot = orders[0].body.snapshot;
    return orders[0].body.checkpoint;
  }
  /// Both shards take the proposed snapshot.
  void taken() {
    snapshots.voted({snapshot, true}, out);
    snapshots.voted({snapshot, true}, out);
    CHECK_FALSE(snapshots.taken({snapshot}));
    REQUIRE(snapshots.taken({snapshot}));
    checkpoints.taken({3, 4}, 12, out);
  }
  void stored(std::uint32_t shard, std::uint64_t checkpoint, const std::string& error = "") {
    msg::Stored answer{.checkpoint = checkpoint, .error = error};
    if (error.empty()) answer.files = {{concat("weights-", shard), 10, "00"}};
    checkpoints.stored(ShardId(shard), answer, out);
  }
  /// Writes the manifest if all shards have stored their files. False if some have not.
  bool commits() {
    const auto works = out.take_work();
    for (const auto& work : works) {
      work->run(0);
      checkpoints.committed(*work, out);
    }
    return !works.empty();
  }

  Iteration next;
  std::uint64_t snapshot = 0;
};

}  // namespace

TEST_CASE("a checkpoint is due after each interval of epochs") {
  Saved parts(plan::EveryEpochs{0.1});  // 6 samples
  parts.leases_iterations(2);
  CHECK(parts.proposed() == 0);
  parts.leases_iterations(1);
  CHECK(parts.proposed() == 1);
  parts.taken();
  for (const std::uint32_t shard : {0, 1}) parts.stored(shard, 1);
  REQUIRE(parts.commits());
  parts.leases_iterations(2);
  CHECK(parts.proposed() == 0);
  parts.leases_iterations(1);
  CHECK(parts.proposed() == 2);
}

TEST_CASE("a checkpoint is due after a number of iterations of all workers") {
  Saved parts(plan::EveryIterations{4});
  parts.set_running({1});
  REQUIRE(parts.request_lease(1, Iteration(0)));
  parts.leases_iterations(2);
  CHECK(parts.proposed() == 0);
  parts.leases_iterations(1);
  CHECK(parts.proposed() == 1);
}

TEST_CASE("a checkpoint is due on request, and only once") {
  Saved parts;
  parts.leases_iterations(3);
  CHECK(parts.proposed() == 0);
  parts.request();
  CHECK(parts.proposed() == 1);
  parts.request();
  parts.leases_iterations(1);
  CHECK(parts.proposed() == 0);  // one is in flight
  parts.taken();
  for (const std::uint32_t shard : {0, 1}) parts.stored(shard, 1);
  REQUIRE(parts.commits());
  CHECK_FALSE(parts.checkpoints.busy());
  parts.leases_iterations(1);
  CHECK(parts.proposed() == 2);  // the second request
}

TEST_CASE("without a place to store it, no checkpoint begins") {
  SchedulerParts parts(workers_plan(2));
  parts.set_running({0});
  parts.checkpoints.request();
  REQUIRE(parts.request_lease(0, Iteration(0)));
  parts.snapshots.start_if_due(parts.out);
  CHECK(parts.out.take<msg::Snapshot>().empty());
  CHECK_FALSE(parts.checkpoints.enabled());
}

TEST_CASE("the interval of checkpoints by time is that of the plan") {
  CHECK(Saved(plan::EverySeconds{2.5}).checkpoints.interval() == milliseconds(2500));
  CHECK(Saved(plan::EveryIterations{4}).checkpoints.interval() == Duration());
}

TEST_CASE("no checkpoint begins while some buckets only have the gradients of a sample") {
  Saved parts;
  parts.leases_iterations(2);
  PartialIterations partial;
  for (const std::uint32_t shard : {0, 1}) {
    const auto buckets =
        static_cast<std::uint32_t>(parts.job->stages->share(0).at[shard].buckets.size());
    partial.add(0, ShardId(shard), Clock(1),
                {shard == 0 ? std::vector{0u} : std::vector<std::uint32_t>{}}, buckets);
  }
  parts.leases.confirm(WorkerId(0), Clock(1), parts.out);
  parts.leases.take_back(WorkerId(0), partial, parts.out);
  REQUIRE(parts.leases.book().has_partial());
  parts.request();
  CHECK(parts.proposed() == 0);
  // Worker 1 gets the rest of these samples.
  parts.set_running({1});
  REQUIRE(parts.request_lease(1, Iteration(0)));
  parts.snapshots.start_if_due(parts.out);
  CHECK(parts.proposed() == 1);
}

TEST_CASE("a checkpoint whose snapshot has partial samples is given up and due again") {
  Saved parts;
  parts.leases_iterations(2);
  parts.request();
  REQUIRE(parts.proposed() == 1);
  PartialIterations partial;
  partial.add(0, ShardId(0), Clock(1), {0}, 2);
  partial.add(0, ShardId(1), Clock(1), {}, 2);
  parts.leases.confirm(WorkerId(0), Clock(1), parts.out);
  parts.leases.take_back(WorkerId(0), partial, parts.out);
  parts.taken();
  CHECK_FALSE(parts.checkpoints.busy());
  for (const std::uint32_t shard : {0, 1}) parts.stored(shard, 1);
  CHECK_FALSE(parts.commits());
  CHECK(parts.store->numbers()->empty());
  CHECK_FALSE(parts.checkpoints.prepare());
  parts.set_running({1});
  REQUIRE(parts.request_lease(1, Iteration(0)));
  CHECK(parts.checkpoints.prepare());
}

TEST_CASE("a manifest has the state at the snapshot and the files of all shards") {
  Saved parts;
  parts.leases_iterations(3);
  parts.request();
  REQUIRE(parts.proposed() == 1);
  parts.leases_iterations(2);  // beyond the snapshot
  parts.taken();
  parts.stored(0, 1);
  parts.stored(0, 1);  // a repeat
  CHECK_FALSE(parts.commits());
  parts.stored(1, 1);
  REQUIRE(parts.commits());
  const auto manifest = parts.store->manifest(1);
  REQUIRE(manifest);
  CHECK(manifest->run == "a run");
  CHECK(manifest->number == 1);
  CHECK(manifest->files.size() == 3);  // with the plan
  const auto& state = manifest->scheduler;
  CHECK(state.pipelines == std::vector{Iteration(3), Iteration(0)});
  CHECK(state.supply.fresh == 6);
  CHECK(state.supply.iterations == 3);
  CHECK(state.supply.returned.empty());
  CHECK(state.partial_pushes == 3);
  CHECK(state.dropped_pushes == 4);
  CHECK(state.evaluated_at == 12);
  const auto written = parts.out.events<event::CheckpointWritten>();
  REQUIRE(written.size() == 1);
  CHECK(written[0].number == 1);
  CHECK(written[0].samples == 6);
  const auto reported = parts.out.take<msg::Checkpointed>();
  REQUIRE(reported.size() == 1);
  CHECK(reported[0].to == kMonitor);
  CHECK(reported[0].body.bytes == total_bytes(*manifest));
  CHECK(reported[0].body.bytes > 20);  // the files of the shards
  CHECK(reported[0].body.error.empty());
}

TEST_CASE("samples of the snapshot's iterations that come back are in the manifest's supply") {
  Saved parts;
  parts.leases_iterations(3);
  parts.request();
  REQUIRE(parts.proposed() == 1);
  parts.leases_iterations(1);
  parts.leases.confirm(WorkerId(0), Clock(2), parts.out);
  parts.leases.take_back(WorkerId(0), {}, parts.out);  // iterations 2 and 3
  parts.taken();
  for (const std::uint32_t shard : {0, 1}) parts.stored(shard, 1);
  REQUIRE(parts.commits());
  const auto supply = parts.store->manifest(1)->scheduler.supply;
  CHECK(supply.fresh == 6);
  REQUIRE(supply.returned.size() == 1);
  CHECK(supply.returned[0].begin == 4);
  CHECK(supply.returned[0].end == 6);
}

TEST_CASE("a shard's error is reported, and the next checkpoint may begin") {
  Saved parts;
  parts.leases_iterations(3);
  parts.request();
  REQUIRE(parts.proposed() == 1);
  parts.stored(1, 1, "the disk is full");  // a shard may answer before all have taken it
  parts.taken();
  CHECK(parts.checkpoints.busy());
  parts.stored(0, 1);
  CHECK(parts.commits());  // removes the files of shard 0
  CHECK(parts.store->numbers()->empty());
  const auto reported = parts.out.take<msg::Checkpointed>();
  REQUIRE(reported.size() == 1);
  CHECK(reported[0].body.number == 1);
  CHECK(reported[0].body.error == "the disk is full");
  CHECK(parts.out.events<event::CheckpointWritten>().empty());
  CHECK_FALSE(parts.checkpoints.busy());
  parts.request();
  CHECK(parts.proposed() == 2);
}

TEST_CASE("the error of a manifest that cannot be written is reported") {
  Saved parts;
  parts.leases_iterations(3);
  parts.request();
  REQUIRE(parts.proposed() == 1);
  parts.taken();
  REQUIRE((*parts.files.create("checkpoints"))->flush());  // a file in place of the folder
  for (const std::uint32_t shard : {0, 1}) parts.stored(shard, 1);
  REQUIRE(parts.commits());
  CHECK_THAT(parts.out.take<msg::Checkpointed>().at(0).body.error, Catch::Contains("checkpoints"));
  CHECK(parts.out.events<event::CheckpointWritten>().empty());
  CHECK_FALSE(parts.checkpoints.busy());
}

TEST_CASE("answers for a proposal that was refused do not count for the next one") {
  Saved parts;
  parts.leases_iterations(3);
  parts.request();
  REQUIRE(parts.proposed() == 1);
  parts.snapshots.voted({parts.snapshot, true}, parts.out);
  parts.snapshots.voted({parts.snapshot, false}, parts.out);
  REQUIRE(parts.proposed() == 2);
  for (const std::uint32_t shard : {0, 1}) parts.stored(shard, 1);
  parts.taken();
  CHECK_FALSE(parts.commits());
  for (const std::uint32_t shard : {0, 1}) parts.stored(shard, 2);
  REQUIRE(parts.commits());
  CHECK(*parts.store->numbers() == std::vector<std::uint64_t>{2});
}

TEST_CASE("a run that stops gives up a checkpoint whose snapshot is not taken") {
  Saved parts;
  parts.leases_iterations(3);
  parts.request();
  REQUIRE(parts.proposed() == 1);
  parts.checkpoints.abandon_untaken();
  CHECK_FALSE(parts.checkpoints.busy());
  for (const std::uint32_t shard : {0, 1}) parts.stored(shard, 1);
  CHECK_FALSE(parts.checkpoints.taken({}, 0, parts.out));
  CHECK_FALSE(parts.commits());
}

TEST_CASE("a checkpoint whose snapshot is taken is completed although the run stops") {
  Saved parts;
  parts.leases_iterations(3);
  parts.request();
  REQUIRE(parts.proposed() == 1);
  parts.taken();
  parts.checkpoints.abandon_untaken();
  CHECK(parts.checkpoints.busy());
  for (const std::uint32_t shard : {0, 1}) parts.stored(shard, 1);
  CHECK(parts.commits());
}

TEST_CASE("a resumed run continues the numbers and the supply of its checkpoint") {
  checkpoint::Checkpoint from;
  from.manifest.number = 7;
  from.manifest.epoch_samples = job_of(workers_plan(2))->data.train->size();
  from.manifest.scheduler.pipelines = {Iteration(10), Iteration(10)};
  from.manifest.scheduler.supply = {
      .fresh = 40, .returned = {{Epoch(0), 4, 6}}, .iterations = 19, .next_lease = 21};
  from.parameters.resize(job_of(workers_plan(2))->model->parameters().size());
  Saved parts(plan::EveryIterations{5}, std::make_shared<checkpoint::Checkpoint>(std::move(from)));
  parts.next = Iteration(10);
  parts.leases_iterations(1);
  const auto lease = parts.out.take<msg::Lease>().at(0).body;
  CHECK(lease.begin == 4);
  CHECK(lease.lease == LeaseId(21));
  CHECK(parts.proposed() == 8);
}

}  // namespace leeway::test
