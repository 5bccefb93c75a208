// SampleChecker, with leases, applied buckets and trained samples.
#include <catch2/catch.hpp>

#include "core/text.hpp"
#include "sim/checkers/samples.hpp"
#include "tests/sim/checker_story.hpp"
#include "tests/support/text_task.hpp"

namespace leeway::sim {
namespace {

/// A run of two epochs of 60 samples on one shard.
class SampleStory {
 public:
  explicit SampleStory(std::shared_ptr<const Job> job)
      : job_(std::move(job)), story_({std::make_shared<SampleChecker>(job_)}) {}

  /// Starts all stages of the pipeline.
  void starts(WorkerId lead, std::int64_t iteration = 0, Session session = Session(1)) {
    for (std::uint32_t stage = 0; stage < job_->stages->count(); ++stage)
      story_.sends(kScheduler, address_of(job_->stages->worker(lead, stage)),
                   msg::Start{Iteration(iteration)}, session);
  }
  void leases(WorkerId lead, std::int64_t first, std::int64_t begin, std::int64_t end,
              std::uint32_t batch, std::int64_t epoch = 0) {
    msg::Lease lease{.epoch = Epoch(epoch), .begin = begin, .end = end, .batch = batch};
    lease.round_samples = batch;
    lease.first_iteration = Iteration(first);
    story_.sends(kScheduler, address_of(lead), lease);
  }
  void applied(WorkerId worker, std::int64_t iteration, std::uint32_t bucket, std::uint32_t samples,
               Session session = Session(1)) {
    story_.emits(kShard, event::BucketApplied{.worker = worker,
                                              .session = session,
                                              .iteration = Iteration(iteration),
                                              .bucket = bucket,
                                              .samples = samples});
  }
  /// Applies all buckets of the worker.
  void applied(WorkerId worker, std::int64_t iteration, std::uint32_t samples) {
    for (std::uint32_t bucket = 0; bucket < buckets(worker); ++bucket)
      applied(worker, iteration, bucket, samples);
  }
  void trained(std::int64_t begin, std::int64_t end, std::int64_t epoch = 0) {
    story_.trained(begin, end, epoch);
  }
  void dropped(WorkerId worker, std::int64_t iteration) {
    story_.emits(kShard,
                 event::PushDropped{
                     .worker = worker, .session = Session(1), .iteration = Iteration(iteration)});
  }
  void partial_push(WorkerId lead) {
    story_.emits(kScheduler, event::PartialPush{.worker = lead, .iterations = 1});
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
};

constexpr auto kFinished = msg::RunEnded::Reason::finished;

}  // namespace

TEST_CASE("a sample trained twice is caught, also in a complete epoch") {
  SampleStory story(ssp_job());
  story.trained(0, 40);
  CHECK(seen([&] { story.trained(39, 50); }) == "position 39 of epoch 0 trained again");
  story.trained(40, 60);
  story.trained(0, 60, 1);
  CHECK(seen([&] { story.trained(5, 6, 1); }) == "position 5 of epoch 1 trained again");
  CHECK(seen([&] { story.trained(0, 1, 2); }) ==
        "positions 0 to 1 of epoch 2 trained, but do not exist");
  CHECK(seen([&] { story.trained(59, 61); }) ==
        "positions 59 to 61 of epoch 0 trained, but do not exist");
}

TEST_CASE("samples that are missing at the end of a run are caught") {
  const auto end = [](std::int64_t trained, std::int64_t counted, std::uint32_t applied = 60) {
    SampleStory story(ssp_job());
    story.starts(kA);
    story.leases(kA, 0, 0, 60, 60);
    story.leases(kA, 1, 0, 60, 60, 1);
    return seen([&] {
      story.applied(kA, 0, 60);
      for (std::uint32_t bucket = 0; bucket < story.buckets(kA); ++bucket)
        story.applied(kA, 1, bucket, bucket == 0 ? applied : 60);
      story.trained(0, 60);
      story.trained(0, trained - 60, 1);
      story.ends(static_cast<std::uint64_t>(counted), kFinished);
    });
  };
  CHECK(end(120, 120) == "");
  CHECK(end(119, 119) == "119 samples were trained, not 120");
  CHECK(end(120, 119) == "the scheduler counts 119 trained samples; its events name 120");
  CHECK(end(120, 120, 0) == "bucket 0 did not get position 0 of epoch 1, which was trained");
  CHECK(end(120, 120, 59) == "bucket 0 got 59 samples of iteration 1, not 60");
}

TEST_CASE("after an early stop, buckets may have samples of partial iterations, but no others") {
  const auto end = [](std::int64_t iterations, bool partial) {
    SampleStory story(ssp_job());
    story.starts(kA);
    story.leases(kA, 0, 0, 40, 10);
    return seen([&] {
      for (std::int64_t i = 0; i < 3; ++i) story.applied(kA, i, 10);
      for (std::int64_t i = 3; i < iterations; ++i) story.applied(kA, i, 0, 10);
      story.trained(0, 30);
      if (partial) story.partial_push(kA);
      story.ends(30);
    });
  };
  CHECK(end(3, true) == "");
  CHECK(end(4, true) == "");
  CHECK(end(5, true) == "bucket 0 applied for iteration 4, session 1, which was not leased");
  CHECK(end(4, false) == "bucket 0 got 40 samples, but 30 were trained");
}

TEST_CASE("exchanged lists of applied buckets of two partial iterations are caught") {
  // A pushes bucket 0 of its first ten samples and bucket 1 of the next ten, and ends. B leases
  // both iterations.
  const auto completed = [](std::uint32_t first_empty, std::uint32_t second_empty) {
    SampleStory story(ssp_job());
    const std::uint32_t buckets = story.buckets(kA);
    story.starts(kA), story.starts(kB);
    story.leases(kA, 0, 0, 20, 10);
    story.applied(kA, 0, 0, 10);
    story.applied(kA, 1, 1, 10);
    story.partial_push(kA);
    story.leases(kB, 0, 0, 10, 10);
    story.leases(kB, 1, 10, 20, 10);
    return seen([&] {
      for (std::uint32_t bucket = 0; bucket < buckets; ++bucket)
        story.applied(kB, 0, bucket, bucket == first_empty ? 0 : 10);
      for (std::uint32_t bucket = 0; bucket < buckets; ++bucket)
        story.applied(kB, 1, bucket, bucket == second_empty ? 0 : 10);
      story.trained(0, 20);
      story.ends(20);
    });
  };
  CHECK(completed(0, 1) == "");
  CHECK(completed(1, 0) == "bucket 0 got position 0 of epoch 0 again, in iteration 0");
  CHECK(completed(0, 2) == "bucket 1 got position 10 of epoch 0 again, in iteration 1");
}

TEST_CASE("iterations of different sessions have different samples") {
  const auto after_restart = [](Session session) {
    SampleStory story(ssp_job());
    story.starts(kA);
    story.leases(kA, 0, 0, 10, 10);
    story.applied(kA, 0, 0, 10);
    story.partial_push(kA);
    story.starts(kA, 0, Session(2));
    story.leases(kA, 0, 10, 20, 10);
    return seen([&] { story.applied(kA, 0, 0, 10, session); });
  };
  CHECK(after_restart(Session(2)) == "");
  CHECK(after_restart(Session(1)) == "bucket 0 got position 0 of epoch 0 again, in iteration 0");
}

TEST_CASE("a repeated lease and a dropped iteration change nothing") {
  SampleStory story(ssp_job());
  story.starts(kA);
  story.leases(kA, 0, 0, 10, 10);
  story.leases(kA, 0, 0, 10, 10);
  story.leases(kA, 1, 10, 20, 10);
  story.applied(kA, 0, 10);
  story.leases(kA, 1, 10, 20, 10);
  story.dropped(kA, 1);
  story.leases(kA, 2, 10, 20, 10);  // the dropped samples, to the same worker
  story.applied(kA, 2, 10);
  story.trained(0, 20);
  CHECK(seen([&] { story.ends(20); }) == "");
  CHECK(seen([&] { story.applied(kA, 1, 0, 10); }) ==
        "bucket 0 applied for iteration 1, session 1, which was not leased");
}

TEST_CASE("samples are counted for each bucket of each stage, by the leases of the first stage") {
  Plan plan = test::text_plan();
  plan.workers = plan.pipeline.stages = 3;
  plan.shards = 1;
  const auto job = test::job_of(plan);
  const std::int64_t size = job->data.train->size();
  for (const bool missing : {false, true}) {
    SampleStory story(job);
    story.starts(kA);
    story.leases(kA, 0, 0, size, static_cast<std::uint32_t>(size));
    for (const WorkerId worker : {kA, kB, WorkerId(2)})
      for (std::uint32_t bucket = 0; bucket < story.buckets(worker); ++bucket)
        story.applied(worker, 0, bucket, missing && worker == kB && bucket == 0 ? 0 : size);
    story.trained(0, size);
    CHECK(seen([&] { story.ends(static_cast<std::uint64_t>(size)); }) ==
          (missing ? "bucket 0 of stage 1 did not get position 0 of epoch 0, which was trained"
                   : ""));
  }
}

TEST_CASE("a set of samples finds repeated insertions, and positions that only another set has") {
  for (const std::int64_t size : {1, 63, 64, 65, 200}) {
    INFO(size);
    SampleSet all(size), some(size);
    for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
      for (std::int64_t at = 0; at < size; ++at) CHECK_FALSE(all.insert(Epoch(epoch), at, at + 1));
      CHECK(all.insert(Epoch(epoch), size - 1, size) == size - 1);
    }
    CHECK(all.count() == static_cast<std::uint64_t>(2 * size));
    CHECK(some.first_missing_of(all) == std::pair(Epoch(0), std::int64_t{0}));
    CHECK_FALSE(some.insert(Epoch(1), 0, size));  // not in the order of epochs
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
