// The monitor: evaluations that fail, and the loss of a shard at the end of a run.
#include "actors/monitor/monitor.hpp"

#include <catch2/catch.hpp>

#include "checkpoint/store.hpp"
#include "tests/support/recording_outbox.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {
namespace {

/// Data that cannot be read.
class Unreadable final : public Dataset {
 public:
  explicit Unreadable(std::shared_ptr<const Dataset> data) : data_(std::move(data)) {}
  std::int64_t size() const override { return data_->size(); }
  Shape sample_shape() const override { return data_->sample_shape(); }
  int classes() const override { return data_->classes(); }
  std::int64_t target_count() const override { return data_->target_count(); }
  void gather(std::span<const std::int64_t>, float*, std::int32_t*, float*) const override {
    throw std::runtime_error("the disk is gone");
  }

 private:
  std::shared_ptr<const Dataset> data_;
};

struct Listener final : Audience {
  void progress(const Progress& now) override { last = now; }
  void evaluated(const EvaluationResult& result) override { evaluations.push_back(result); }
  void ended(const RunTotals& report) override { totals = report; }
  Progress last;
  std::vector<EvaluationResult> evaluations;
  std::optional<RunTotals> totals;
};

/// A monitor, and the messages that it gets at the end of a run with two shards.
struct Scene {
  explicit Scene(std::shared_ptr<const Job> of) : job(std::move(of)), monitor(job, {&listener}) {
    monitor.on_start(out);
  }
  void get(Address from, Body body) {
    monitor.on_message(from, encode({.body = std::move(body)}), out);
  }
  void end(msg::RunEnded::Reason reason) { get(kScheduler, msg::RunEnded{reason, "done", 60, 0}); }
  void final_state_of(std::uint32_t shard) {
    msg::SnapshotState state;
    state.final = true;
    for (const BlockId id : job->layout->blocks_of(ShardId(shard))) {
      const auto& block = job->layout->block(id);
      Blob data = Blob::floats(block.floats);
      std::fill_n(data.mutable_floats(), block.floats, 0.5f);
      state.blocks.push_back({id, Version(1), DType::f32, {block.floats}, std::move(data)});
    }
    get(address_of(ShardId(shard)), std::move(state));
  }
  void evaluate() {
    for (const auto& work : out.take_work())
      for (int part = 0; part < work->parts(); ++part) {
        work->run(part);
        monitor.on_part(*work, part, out);
      }
  }

  std::shared_ptr<const Job> job;
  Listener listener;
  RecordingOutbox out;
  Monitor monitor;
};

}  // namespace

TEST_CASE("a run whose shard is lost before its last state arrives has failed") {
  Scene scene(job_of(tiny_plan()));
  scene.end(msg::RunEnded::Reason::finished);
  scene.final_state_of(0);
  CHECK_FALSE(scene.listener.totals);
  scene.monitor.on_down(shard(1), EndReason("its node is gone"), scene.out);
  REQUIRE(scene.listener.totals);
  const RunTotals& totals = *scene.listener.totals;
  CHECK(totals.end.reason == msg::RunEnded::Reason::failed);
  CHECK(totals.end.text == "the final weights are lost, because shard 1 ended: its node is gone");
  CHECK(totals.end.samples_trained == 60);
  CHECK(totals.weights.empty());
}

TEST_CASE("a shard that is lost after its last state arrived does no harm") {
  Scene scene(job_of(tiny_plan()));
  scene.end(msg::RunEnded::Reason::finished);
  for (const std::uint32_t one : {0u, 1u}) scene.final_state_of(one);
  scene.monitor.on_down(shard(1), EndReason("its node is gone"), scene.out);
  CHECK_FALSE(scene.listener.totals);  // the evaluation runs
  scene.evaluate();
  REQUIRE(scene.listener.totals);
  CHECK(scene.listener.totals->end.reason == msg::RunEnded::Reason::finished);
  CHECK(scene.listener.totals->weights.size() == scene.job->layout->blocks().size());
}

TEST_CASE("the first report of a resumed run has the counts of its checkpoint") {
  Job job = *job_of(tiny_plan());
  job.resumed = std::make_shared<checkpoint::Checkpoint>();
  job.resumed->manifest.scheduler.supply.fresh = 30;
  job.resumed->manifest.scheduler.supply.iterations = 15;
  Scene scene(std::make_shared<const Job>(std::move(job)));
  scene.monitor.on_timer(0, scene.out);
  CHECK(scene.listener.last.samples_trained == 30);
  CHECK(scene.listener.last.samples == 30);
  CHECK(scene.listener.last.iterations == 15);
}

TEST_CASE("an evaluation that fails is reported, and the run keeps its weights") {
  const Plan plan = tiny_plan();
  auto data = load_data(plan.data, plan.seed);
  REQUIRE(data);
  data->test = std::make_shared<Unreadable>(data->test);
  const auto job = make_job(plan, std::move(*data));
  REQUIRE(job);
  Scene scene(*job);
  scene.end(msg::RunEnded::Reason::finished);
  for (const std::uint32_t one : {0u, 1u}) scene.final_state_of(one);
  scene.evaluate();
  REQUIRE(scene.listener.evaluations.size() == 1);
  CHECK(scene.listener.evaluations[0].error == "evaluation: the disk is gone");
  REQUIRE(scene.listener.totals);
  CHECK(scene.listener.totals->end.reason == msg::RunEnded::Reason::finished);
  CHECK(scene.listener.totals->evaluations.empty());
  CHECK(scene.listener.totals->weights.size() == scene.job->layout->blocks().size());
}

}  // namespace leeway::test
