// The checker of samples, fed by hand: what was leased, applied and trained.
#include <catch2/catch.hpp>

#include "core/text.hpp"
#include "sim/checkers/samples.hpp"
#include "tests/sim/checker_story.hpp"
#include "tests/support/text_task.hpp"

namespace leeway::sim {
namespace {

/// A run of two epochs of 60 samples, on one shard.
class Account {
 public:
  explicit Account(std::shared_ptr<const Job> job)
      : job_(std::move(job)), story_({std::make_shared<SampleChecker>(job_)}) {}

  /// As a pipeline, with all its stages.
  void starts(WorkerId lead, std::int64_t iteration = 0, Incarnation incarnation = Incarnation(1)) {
    ++number_;
    for (std::uint32_t stage = 0; stage < job_->stages->count(); ++stage)
      story_.sends(kScheduler, address_of(job_->stages->worker(lead, stage)),
                   msg::Start{Iteration(iteration), number_}, incarnation);
  }
  void leases(WorkerId lead, std::int64_t first, std::int64_t begin, std::int64_t end,
              std::uint32_t batch, std::int64_t epoch = 0) {
    msg::Lease lease{.epoch = Epoch(epoch), .begin = begin, .end = end, .batch = batch};
    lease.round_samples = batch;
    lease.first_iteration = Iteration(first);
    story_.sends(kScheduler, address_of(lead), lease);
  }
  void applied(WorkerId worker, std::int64_t iteration, std::uint32_t bucket, std::uint32_t samples,
               Incarnation incarnation = Incarnation(1)) {
    story_.happens(kShard, event::BucketApplied{.worker = worker,
                                                .incarnation = incarnation,
                                                .iteration = Iteration(iteration),
                                                .bucket = bucket,
                                                .samples = samples});
  }
  /// All buckets that a worker pushes.
  void applied(WorkerId worker, std::int64_t iteration, std::uint32_t samples) {
    for (std::uint32_t bucket = 0; bucket < buckets(worker); ++bucket)
      applied(worker, iteration, bucket, samples);
  }
  void trained(std::int64_t begin, std::int64_t end, std::int64_t epoch = 0) {
    story_.trained(begin, end, epoch);
  }
  void is_late(WorkerId worker, std::int64_t iteration) {
    story_.happens(kShard, event::PushDropped{.worker = worker,
                                              .incarnation = Incarnation(1),
                                              .iteration = Iteration(iteration)});
  }
  void tears(WorkerId lead) {
    story_.happens(kScheduler, event::PartialPush{.worker = lead, .iterations = 1});
  }
  void ends(std::uint64_t samples,
            msg::RunEnded::Reason reason = msg::RunEnded::Reason::interrupted) {
    RunTotals totals;
    totals.end.reason = reason;
    totals.end.samples_trained = samples;
    story_.run_ends(totals);
  }
  std::uint32_t buckets(WorkerId worker) const {
    return static_cast<std::uint32_t>(job_->stages->share_of(worker).at[0].buckets.size());
  }

 private:
  std::shared_ptr<const Job> job_;
  Story story_;
  std::uint64_t number_ = 0;
};

constexpr auto kFinished = msg::RunEnded::Reason::finished;

}  // namespace

TEST_CASE("a sample that is trained twice is caught, in an epoch that is complete too") {
  Account account(ssp_job());
  account.trained(0, 40);
  CHECK(seen([&] { account.trained(39, 50); }) == "position 39 of epoch 0 trained again");
  account.trained(40, 60);
  account.trained(0, 60, 1);
  CHECK(seen([&] { account.trained(5, 6, 1); }) == "position 5 of epoch 1 trained again");
  CHECK(seen([&] { account.trained(0, 1, 2); }) ==
        "positions 0 to 1 of epoch 2 trained, but do not exist");
  CHECK(seen([&] { account.trained(59, 61); }) ==
        "positions 59 to 61 of epoch 0 trained, but do not exist");
}

TEST_CASE("samples that the run lacks at its end are caught") {
  const auto end = [](std::int64_t trained, std::int64_t counted, std::uint32_t applied = 60) {
    Account account(ssp_job());
    account.starts(kA);
    account.leases(kA, 0, 0, 60, 60);
    account.leases(kA, 1, 0, 60, 60, 1);
    return seen([&] {
      account.applied(kA, 0, 60);
      for (std::uint32_t bucket = 0; bucket < account.buckets(kA); ++bucket)
        account.applied(kA, 1, bucket, bucket == 0 ? applied : 60);
      account.trained(0, 60);
      account.trained(0, trained - 60, 1);
      account.ends(static_cast<std::uint64_t>(counted), kFinished);
    });
  };
  CHECK(end(120, 120) == "");
  CHECK(end(119, 119) == "119 samples were trained, not 120");
  CHECK(end(120, 119) == "the scheduler counts 119 trained samples; its events name 120");
  CHECK(end(120, 120, 0) == "bucket 0 did not get position 0 of epoch 1, which was trained");
  CHECK(end(120, 120, 59) == "bucket 0 got 59 samples of iteration 1; leased were 60");
}

TEST_CASE("of a run that stops early, parts may have what was leased and partial, and no more") {
  const auto end = [](std::int64_t iterations, bool partial) {
    Account account(ssp_job());
    account.starts(kA);
    account.leases(kA, 0, 0, 40, 10);
    return seen([&] {
      for (std::int64_t i = 0; i < 3; ++i) account.applied(kA, i, 10);
      for (std::int64_t i = 3; i < iterations; ++i) account.applied(kA, i, 0, 10);
      account.trained(0, 30);
      if (partial) account.tears(kA);
      account.ends(30);
    });
  };
  CHECK(end(3, true) == "");
  CHECK(end(4, true) == "");
  CHECK(end(5, true) == "bucket 0 applied for iteration 4, incarnation 1, which was not leased");
  CHECK(end(4, false) == "bucket 0 got 40 samples; trained were 30");
}

TEST_CASE(
    "partial iterations are completed each with its own list: two lists exchanged are caught") {
  // A has pushed bucket 0 of its first ten samples and bucket 1 of the next ten, and ends. B is
  // leased both.
  const auto completed = [](std::uint32_t first_empty, std::uint32_t second_empty) {
    Account account(ssp_job());
    const std::uint32_t buckets = account.buckets(kA);
    account.starts(kA), account.starts(kB);
    account.leases(kA, 0, 0, 20, 10);
    account.applied(kA, 0, 0, 10);
    account.applied(kA, 1, 1, 10);
    account.tears(kA);
    account.leases(kB, 0, 0, 10, 10);
    account.leases(kB, 1, 10, 20, 10);
    return seen([&] {
      for (std::uint32_t bucket = 0; bucket < buckets; ++bucket)
        account.applied(kB, 0, bucket, bucket == first_empty ? 0 : 10);
      for (std::uint32_t bucket = 0; bucket < buckets; ++bucket)
        account.applied(kB, 1, bucket, bucket == second_empty ? 0 : 10);
      account.trained(0, 20);
      account.ends(20);
    });
  };
  CHECK(completed(0, 1) == "");
  CHECK(completed(1, 0) == "bucket 0 got position 0 of epoch 0 again, in iteration 0");
  CHECK(completed(0, 2) == "bucket 1 got position 10 of epoch 0 again, in iteration 1");
}

TEST_CASE("an iteration that another life was leased has other samples") {
  const auto second_life = [](Incarnation incarnation) {
    Account account(ssp_job());
    account.starts(kA);
    account.leases(kA, 0, 0, 10, 10);
    account.applied(kA, 0, 0, 10);
    account.tears(kA);
    account.starts(kA, 0, Incarnation(2));
    account.leases(kA, 0, 10, 20, 10);
    return seen([&] { account.applied(kA, 0, 0, 10, incarnation); });
  };
  CHECK(second_life(Incarnation(2)) == "");
  CHECK(second_life(Incarnation(1)) == "bucket 0 got position 0 of epoch 0 again, in iteration 0");
}

TEST_CASE("a lease that is said again, and an iteration that came too late, change nothing") {
  Account account(ssp_job());
  account.starts(kA);
  account.leases(kA, 0, 0, 10, 10);
  account.leases(kA, 0, 0, 10, 10);
  account.leases(kA, 1, 10, 20, 10);
  account.applied(kA, 0, 10);
  account.leases(kA, 1, 10, 20, 10);
  account.is_late(kA, 1);
  account.leases(kA, 2, 10, 20, 10);  // again to the same
  account.applied(kA, 2, 10);
  account.trained(0, 20);
  CHECK(seen([&] { account.ends(20); }) == "");
  CHECK(seen([&] { account.applied(kA, 1, 0, 10); }) ==
        "bucket 0 applied for iteration 1, incarnation 1, which was not leased");
}

TEST_CASE("samples are counted for each bucket of each stage, by the leases of the first") {
  Plan plan = test::text_plan();
  plan.workers = plan.pipeline.stages = 3;
  plan.shards = 1;
  const auto job = test::job_of(plan);
  const std::int64_t size = job->data.train->size();
  for (const bool missing : {false, true}) {
    Account account(job);
    account.starts(kA);
    account.leases(kA, 0, 0, size, static_cast<std::uint32_t>(size));
    for (const WorkerId worker : {kA, kB, WorkerId(2)})
      for (std::uint32_t bucket = 0; bucket < account.buckets(worker); ++bucket)
        account.applied(worker, 0, bucket, missing && worker == kB && bucket == 0 ? 0 : size);
    account.trained(0, size);
    CHECK(seen([&] { account.ends(static_cast<std::uint64_t>(size)); }) ==
          (missing ? "bucket 0 of stage 1 did not get position 0 of epoch 0, which was trained"
                   : ""));
  }
}

TEST_CASE("a set of samples knows what was inserted twice, and what another has beyond it") {
  for (const std::int64_t size : {1, 63, 64, 65, 200}) {
    INFO(size);
    SampleSet all(size), some(size);
    for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
      for (std::int64_t at = 0; at < size; ++at) CHECK_FALSE(all.insert(Epoch(epoch), at, at + 1));
      CHECK(all.insert(Epoch(epoch), size - 1, size) == size - 1);
    }
    CHECK(all.count() == static_cast<std::uint64_t>(2 * size));
    CHECK(some.first_missing_of(all) == std::pair(Epoch(0), std::int64_t{0}));
    CHECK_FALSE(some.insert(Epoch(1), 0, size));  // not in their order
    CHECK(some.insert(Epoch(1), size / 2, size) == size / 2);
    CHECK_FALSE(some.insert(Epoch(0), 0, size - 1));
    CHECK(some.first_missing_of(all) == std::pair(Epoch(0), size - 1));
    CHECK_FALSE(all.first_missing_of(some));
    CHECK_FALSE(some.insert(Epoch(0), size - 1, size));
    CHECK_FALSE(some.first_missing_of(all));
    CHECK(some.insert(Epoch(0), 0, 1) == 0);
    CHECK_FALSE(some.insert(Epoch(2), 0, 0));
  }
  SampleSet trained(100), applied(100);
  CHECK_FALSE(trained.insert(Epoch(3), 10, 90));
  CHECK_FALSE(applied.insert(Epoch(3), 0, 70));
  CHECK(applied.first_missing_of(trained) == std::pair(Epoch(3), std::int64_t{70}));
  CHECK(applied.insert(Epoch(3), 65, 80) == 65);
}

}  // namespace leeway::sim
