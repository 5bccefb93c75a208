#include "dashboard/run_history.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "dashboard/sentences.hpp"
#include "dashboard/state.hpp"

namespace leeway::dashboard {
namespace {

using Catch::Matchers::Contains;
using OrderedJson = nlohmann::ordered_json;
using Kind = blame::Cause::Kind;

RunInfo info_of(std::uint32_t workers) {
  return {.name = "tiny", .kind = "threads", .policy = "ssp(2)", .workers = workers, .bound = 2};
}

Instant at(std::int64_t ms) {
  return Instant{} + milliseconds(ms);
}

/// Worker 1 computes for a second; worker 0 computes for 100 ms and then waits for it.
void add_wait(RunHistory& run, std::int64_t begin_ms, std::int64_t iteration) {
  const WorkerId fast(0), slow(1);
  const Iteration now(iteration), next(iteration + 1);
  const Clock clock(iteration);
  run.event(worker(0), at(begin_ms), event::StepStarted{fast, now, 10, {}});
  run.event(worker(1), at(begin_ms), event::StepStarted{slow, now, 10, {}});
  run.event(worker(0), at(begin_ms + 100), event::StepFinished{fast, now, 10});
  run.event(shard(0), at(begin_ms + 100), event::PullParked{fast, next, clock});
  run.event(worker(1), at(begin_ms + 1000), event::StepFinished{slow, now, 10});
  run.event(shard(0), at(begin_ms + 1000),
            event::BucketApplied{.worker = slow, .iteration = now, .samples = 10});
  run.event(shard(0), at(begin_ms + 1000), event::ClockMoved{slow, Clock(iteration + 1)});
  run.event(shard(0), at(begin_ms + 1000), event::PullReleased{fast, next, slow});
  run.event(shard(0), at(begin_ms + 1000),
            event::PullAnswered{fast, next, Clock(iteration + 1), {}});
  run.event(worker(0), at(begin_ms + 1000), event::StepStarted{fast, next, 10, milliseconds(900)});
  run.event(worker(0), at(begin_ms + 1000), event::StepFinished{fast, next, 0});
}

}  // namespace

TEST_CASE("waits are counted by cause, and their intervals sum to them") {
  RunHistory run(info_of(2));
  run.event(shard(0), at(0), event::Admitted{WorkerId(0), Iteration(0)});
  run.event(shard(0), at(0), event::Admitted{WorkerId(1), Iteration(0)});
  for (std::int64_t i = 0; i < 10; ++i) add_wait(run, 1000 * i, i);
  CHECK(run.causes().at({Kind::worker, 1}) == Approx(9));
  CHECK(run.compute() == Approx(10 * 1.1));
  double compute = 0, waits = 0;
  std::uint64_t samples = 0;
  for (const Interval& interval : run.intervals().all()) {
    compute += interval.compute;
    samples += interval.samples;
    for (const auto& [key, seconds] : interval.waits) {
      CHECK(key == std::pair<std::size_t, blame::Cause>(0, {Kind::worker, 1}));
      waits += seconds;
    }
    CHECK(interval.alive == 2);
  }
  CHECK(compute == Approx(run.compute()));
  CHECK(waits == Approx(run.wait()));
  CHECK(samples == 200);
  CHECK_THAT(lost_sentence(run), Contains("Worker 1 costs 45.00% of all time"));
  CHECK(blocked_sentence(run) == "No pull is parked now.");
  run.ended(10, "finished", "");
  CHECK(blocked_sentence(run) ==
        "In the whole run, worker 0 waited longest, 9.0 s for worker 1; 10 pulls were parked.");
}

TEST_CASE("a parked pull is shown until it is answered, with the slowest live worker") {
  RunHistory run(info_of(3));
  for (std::uint32_t i = 0; i < 3; ++i)
    run.event(shard(0), at(0), event::Admitted{WorkerId(i), Iteration(0)});
  run.event(shard(0), at(10), event::ClockMoved{WorkerId(0), Clock(3)});
  run.event(shard(0), at(10), event::ClockMoved{WorkerId(1), Clock(2)});
  run.event(shard(0), at(20), event::PullParked{WorkerId(0), Iteration(3), Clock(0)});
  run.event(shard(1), at(25), event::PullParked{WorkerId(0), Iteration(3), Clock(0)});
  REQUIRE(run.parked().size() == 1);
  CHECK(run.parked()[0].since == Approx(0.02));
  CHECK(run.slowest() == WorkerId(2));
  run.event(kScheduler, at(30), event::Evicted{WorkerId(2)});
  CHECK(run.slowest() == WorkerId(1));
  CHECK(run.intervals().all().back().alive == 2);
  run.event(shard(0), at(40), event::PullAnswered{WorkerId(0), Iteration(3), Clock(2), {}});
  run.event(shard(1), at(40), event::PullAnswered{WorkerId(0), Iteration(3), Clock(2), {}});
  CHECK(run.parked().empty());
  CHECK(run.leads_by_row()[0][1] == 2);
  CHECK(run.leads_by_shard()[0][1] == 1);  // of the only shard that the run has
}

TEST_CASE("a parked pull has no lead until it is answered, so no lead exceeds the bound") {
  RunHistory run(info_of(2));
  for (std::uint32_t i = 0; i < 2; ++i)
    run.event(shard(0), at(0), event::Admitted{WorkerId(i), Iteration(0)});
  run.event(shard(0), at(10), event::PullAnswered{WorkerId(0), Iteration(2), Clock(0), {}});
  run.event(shard(0), at(20), event::PullParked{WorkerId(0), Iteration(3), Clock(0)});
  CHECK(run.intervals().all()[20].lead[0] == -1);
  CHECK(run.intervals().all()[20].parked[0] == 1);
  run.ended(0.03, "finished", "");
  CHECK(staleness_sentence(run) ==
        "The staleness bound is 2. The largest lead over the slowest worker was 2, by worker 0; "
        "1 pull was parked.");
  CHECK_THAT(leads_sentence(run), Contains("the largest lead is 2."));
}

TEST_CASE("a worker that leaves has one mark") {
  RunInfo info = info_of(4);
  info.stages = 2;
  RunHistory run(info);
  for (std::uint32_t i = 0; i < 4; ++i)
    run.event(shard(0), at(0), event::Admitted{WorkerId(i), Iteration(0)});
  for (const std::uint32_t i : {2u, 3u, 2u})
    run.event(kScheduler, at(10), event::Left{WorkerId(i)});
  REQUIRE(run.marks().size() == 1);
  CHECK(run.marks()[0].kind == "left");
  CHECK(run.marks()[0].text == "worker 2 has left");
  CHECK(run.intervals().all().back().alive == 2);
  run.explain_eviction(WorkerId(2), "it was asked to leave", 0.02);
  REQUIRE(run.marks().size() == 1);
  CHECK(run.marks()[0].text == "worker 2 has left: it was asked to leave");
}

TEST_CASE("reasons of evictions belong to them in order, and marks are sorted by time") {
  RunHistory run(info_of(2));
  for (const std::int64_t ms : {10, 30}) {
    run.event(shard(0), at(ms - 10), event::Admitted{WorkerId(1), Iteration(0)});
    run.event(kScheduler, at(ms), event::Evicted{WorkerId(1)});
  }
  run.explain_eviction(WorkerId(1), "first", 0.01);
  run.explain_eviction(WorkerId(1), "second", 0.03);
  run.evaluated({.now = at(15), .error = "no memory"});
  run.checkpointed({.now = at(40), .number = 2, .error = "the disk is full"});
  run.checkpointed({.now = at(50), .number = 3});  // the scheduler's event marks it
  std::vector<std::string> texts;
  for (const Mark& mark : run.marks()) texts.push_back(mark.text);
  CHECK(texts == std::vector<std::string>{"worker 1 was evicted: first",
                                          "evaluation failed: no memory", "worker 1 has returned",
                                          "worker 1 was evicted: second",
                                          "checkpoint 2 was not written: the disk is full"});
}

TEST_CASE("an event of a worker that the run does not have changes nothing") {
  RunHistory run(info_of(2));
  const auto before = run.revision();
  run.event(worker(7), at(1), event::StepStarted{WorkerId(7), Iteration(0), 10, {}});
  CHECK(run.revision() == before);
}

TEST_CASE("more workers than rows are grouped") {
  RunHistory run(info_of(1000));
  CHECK(run.rows() == kMostRows);
  CHECK(run.row_of(0) == 0);
  CHECK(run.row_of(999) == kMostRows - 1);
  CHECK(run.name_of_row(0) == "workers 0-15");
  CHECK(run.name_of_row(63) == "workers 985-999");
  for (std::size_t worker = 0; worker < 1000; ++worker)
    CHECK(run.row_of(worker) <= run.row_of(std::min<std::size_t>(worker + 1, 999)));
  RunHistory small(info_of(3));
  CHECK(small.name_of_row(2) == "worker 2");
}

TEST_CASE("changes since a revision make the state equal to the whole state") {
  RunHistory run(info_of(2));
  OrderedJson shown = state_of(run, {});
  std::uint64_t revision = run.revision();
  for (std::int64_t i = 0; i < 40; ++i) {
    add_wait(run, 1000 * i, i);
    if (i % 3 == 0) run.mark(static_cast<double>(i), "checkpoint", "checkpoint");
    if (i % 5 == 0)
      run.evaluated({.now = at(1000 * i), .samples_trained = 10, .loss = 1.0 / double(i + 1)});
    const OrderedJson change = state_of(run, {}, revision);
    revision = run.revision();
    for (const auto& [key, value] : change.items()) {
      if (key != "intervals") {
        shown[key] = value;
        continue;
      }
      OrderedJson& list = shown["intervals"]["list"];
      const std::size_t from = value.at("from");
      REQUIRE(from <= list.size());
      while (list.size() > from) list.erase(list.size() - 1);
      for (const OrderedJson& one : value.at("list")) list.push_back(one);
    }
    CHECK(shown == state_of(run, {}));
  }
}

TEST_CASE("a worker takes part in each interval of its iterations") {
  RunHistory run(info_of(3));
  for (std::uint32_t i = 0; i < 3; ++i) {
    run.event(shard(0), at(0), event::Admitted{WorkerId(i), Iteration(0)});
    run.event(worker(i), at(10), event::StepStarted{WorkerId(i), Iteration(0), 10, {}});
  }
  run.event(worker(0), at(60), event::StepFinished{WorkerId(0), Iteration(0), 10});
  run.event(kScheduler, at(80), event::Evicted{WorkerId(1)});
  const auto count_at = [&](std::size_t ms) {
    return state_of(run, {})["intervals"]["list"][ms]["taking_part"].get<int>();
  };
  run.event(shard(0), at(100), event::ClockMoved{WorkerId(0), Clock(1)});
  Progress progress;
  progress.now = at(100);
  run.progress(progress);
  CHECK(count_at(5) == 0);
  CHECK(count_at(10) == 3);
  CHECK(count_at(40) == 3);
  CHECK(count_at(70) == 2);
  CHECK(count_at(90) == 1);  // still computes
  run.ended(0.1, "interrupted", "");
  CHECK(count_at(90) == 1);
}

TEST_CASE("bytes are divided over the time in which they were sent") {
  RunHistory run(info_of(2));
  Progress progress;
  progress.now = at(100);
  progress.push_bytes = 1001;
  run.progress(progress);
  progress.now = at(200);
  progress.push_bytes = 3001;
  run.progress(progress);
  run.progress(progress);
  std::uint64_t first = 0, all = 0;
  for (std::size_t i = 0; i < run.intervals().all().size(); ++i) {
    all += run.intervals().all()[i].push_bytes;
    if (i < 100) first += run.intervals().all()[i].push_bytes;
  }
  CHECK(first == 1001);
  CHECK(all == 3001);
  CHECK(run.intervals().all()[150].push_bytes == 20);
}

TEST_CASE("curves and marks are bounded, and keep their ends") {
  RunHistory run(info_of(2));
  for (int i = 0; i < 5000; ++i) {
    Progress progress;
    progress.now = at(i);
    progress.train_loss = i;
    run.progress(progress);
    run.mark(i, "checkpoint", std::to_string(i));
  }
  CHECK(run.train().size() <= RunHistory::kMostPoints);
  CHECK(run.train().front().loss == 0);
  CHECK(run.train().back().loss == 4999);
  CHECK(run.marks().size() == RunHistory::kMostMarks);
  CHECK(run.marks().front().text == "0");
  CHECK(run.marks().back().text == "4999");
}

TEST_CASE("the slowness of a stage is relative to the same stage of other pipelines") {
  RunInfo info = info_of(6);
  info.stages = 2;
  RunHistory run(info);
  using Operation = event::StageComputed::Operation;
  // Stage 1 is twice as long as stage 0; worker 4, stage 0 of pipeline 2, is slow.
  const std::vector<std::int64_t> ms{10, 20, 10, 20, 30, 20};
  for (std::uint32_t id = 0; id < 6; ++id)
    for (const Operation operation : {Operation::forward, Operation::backward_inputs})
      run.event(
          worker(id), at(100 + id),
          event::StageComputed{
              .worker = WorkerId(id), .operation = operation, .computed = milliseconds(ms[id])});
  const auto ratios = run.slowness();
  CHECK(ratios == std::vector<double>{1, 1, 1, 1, 3, 1});
  CHECK_THAT(pipeline_sentence(run), Contains("Only worker 4 (stage 0 of pipeline 2)"));
  CHECK(run.operations().size() == 12);
}

TEST_CASE("names with markup and invalid bytes become valid JSON") {
  RunInfo info = info_of(1);
  info.name = "<img src=x onerror=alert(1)>\xff\"";
  const RunHistory run(info);
  const OrderedJson json = OrderedJson::parse(text_of(state_of(run, {})));
  CHECK(json["run"]["name"] == "<img src=x onerror=alert(1)>\xef\xbf\xbd\"");
}

}  // namespace leeway::dashboard
