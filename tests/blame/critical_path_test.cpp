#include "blame/critical_path.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "tests/blame/event_files.hpp"

namespace leeway::blame {
namespace {

using Catch::Matchers::Contains;
using test::TemporaryFolder;
using Activity = CriticalPath::Activity;

/// From the begin of the run.
Duration at(double seconds) {
  return nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

CriticalPath path_of(const std::string& workers, const std::vector<TimedEvent>& events) {
  const TemporaryFolder folder;
  folder.write("result.json", R"({"workers": [)" + workers + "]}");
  write_events(folder, events);
  const auto path = find_critical_path(folder.path(""));
  REQUIRE(path);
  double sum = 0;
  for (const auto& row : path->rows) sum += row.seconds;
  CHECK(sum == Approx(path->seconds));
  return *path;
}

std::map<std::pair<Activity, std::size_t>, double> seconds_of(const CriticalPath& path) {
  std::map<std::pair<Activity, std::size_t>, double> seconds;
  for (const auto& row : path.rows) seconds[{row.activity, row.worker}] = row.seconds;
  return seconds;
}

TimedEvent started(std::uint32_t id, std::int64_t iteration, double time, double waited) {
  return {worker(id), at(time),
          event::StepStarted{WorkerId(id), Iteration(iteration), 10, at(waited)}};
}
TimedEvent finished(std::uint32_t id, std::int64_t iteration, double time) {
  return {worker(id), at(time), event::StepFinished{WorkerId(id), Iteration(iteration), 10}};
}

using StageOperation = event::StageComputed::Operation;
struct Times {
  double took = 0, before = 0, after = 0, other = 0;  // seconds
  std::uint32_t micro_batch = 0;
};
TimedEvent operation(std::uint32_t stage, StageOperation operation, std::uint32_t chunk, double end,
                     const Times& times) {
  return {worker(stage), at(end),
          event::StageComputed{.worker = WorkerId(stage),
                               .operation = operation,
                               .chunk = chunk,
                               .micro_batch = times.micro_batch,
                               .computed = at(times.took),
                               .waited = at(times.before + times.after + times.other),
                               .waited_before = at(times.before),
                               .waited_after = at(times.after)}};
}

}  // namespace

TEST_CASE("the path leads from a parked pull to the computation of the worker that released it") {
  // Worker 0 computes for 1 s, then waits for worker 1, which computes for 6 s.
  const WorkerId id(0);
  const Iteration next(1);
  const CriticalPath path =
      path_of(R"({"worker": 0}, {"worker": 1})",
              {{kScheduler, at(0), event::LeaseGranted{.worker = id, .iteration = Iteration(0)}},
               started(0, 0, 1, 1),
               started(1, 0, 1, 1),
               finished(0, 0, 2),
               {kScheduler, at(2), event::LeaseGranted{.worker = id, .iteration = next}},
               {shard(0), at(2.25), event::PullParked{id, next, {}}},
               finished(1, 0, 7),
               {shard(0), at(7.5), event::ClockMoved{WorkerId(1), Clock(1)}},
               {shard(0), at(7.5), event::PullReleased{id, next, WorkerId(1)}},
               {shard(0), at(7.5), event::PullAnswered{id, next, {}, {}}},
               started(0, 1, 8, 6),
               finished(0, 1, 10)});
  CHECK(path.seconds == Approx(10));
  const auto spent = seconds_of(path);
  CHECK(spent.at({Activity::computing, 1}) == Approx(6));
  CHECK(spent.at({Activity::computing, 0}) == Approx(2));
  CHECK(spent.at({Activity::message, 1}) == Approx(0.5));
  CHECK(spent.at({Activity::weights, 0}) == Approx(0.5));
  CHECK(spent.at({Activity::weights, 1}) == Approx(1));  // before its first iteration
  CHECK(spent.size() == 5);
  CHECK(path.by_activity().front().second == Approx(8));
  CHECK(explain(path) ==
        "The largest share of the critical path is computing of worker 1: 60.00%.");
}

TEST_CASE("the path of a pipeline leads to the stage whose activation or gradient was awaited") {
  const CriticalPath path =
      path_of(R"({"worker": 0, "stage": 0}, {"worker": 1, "stage": 1})",
              {{kScheduler, at(0), event::LeaseGranted{.worker = WorkerId(0)}},
               operation(0, StageOperation::forward, 0, 1, {.took = 1}),
               operation(1, StageOperation::forward, 1, 4, {.took = 2, .before = 2}),
               operation(1, StageOperation::backward_inputs, 1, 8, {.took = 4}),
               operation(0, StageOperation::backward_inputs, 0, 11, {.took = 2, .after = 8})});
  CHECK(path.seconds == Approx(11));
  const auto spent = seconds_of(path);
  CHECK(spent.at({Activity::computing, 0}) == Approx(3));
  CHECK(spent.at({Activity::computing, 1}) == Approx(6));
  CHECK(spent.at({Activity::message, 0}) == Approx(1));  // its activation
  CHECK(spent.at({Activity::message, 1}) == Approx(1));  // its gradient
  CHECK(spent.size() == 4);
}

TEST_CASE(
    "the path finds the awaited iteration if its end is reported late, or a later one has begun") {
  // The pull of worker 0 waits for iteration 0 of worker 1. `end`: of this iteration, which worker
  // 1 reports after the shard has released the pull at 7.
  const double end = GENERATE(6.5, 7.25);
  const WorkerId id(0);
  const Iteration next(1);
  const CriticalPath path = path_of(R"({"worker": 0}, {"worker": 1})",
                                    {started(0, 0, 0, 0),
                                     started(1, 0, 0, 0),
                                     finished(0, 0, 2),
                                     {shard(0), at(2), event::PullParked{id, next, {}}},
                                     {shard(0), at(7), event::ClockMoved{WorkerId(1), Clock(1)}},
                                     {shard(0), at(7), event::PullReleased{id, next, WorkerId(1)}},
                                     {shard(0), at(7), event::PullAnswered{id, next, {}, {}}},
                                     started(0, 1, 8, 6),
                                     finished(1, 0, end),
                                     started(1, 1, end, 0),
                                     finished(1, 1, 7.5),
                                     finished(0, 1, 10)});
  CHECK(path.seconds == Approx(10));
  const auto spent = seconds_of(path);
  CHECK(spent.at({Activity::computing, 0}) == Approx(2));
  CHECK(spent.at({Activity::weights, 0}) == Approx(1));
  CHECK(spent.at({Activity::computing, 1}) == Approx(std::min(end, 7.0)));
  CHECK(spent.contains({Activity::message, 1}) == (end < 7));
}

TEST_CASE("the path of a stage leads to the operation that gave its input, not to the last one") {
  // A V of two stages with two chunks each: stage 0 has chunks 0 and 3, stage 1 has 1 and 2. The
  // forward of chunk 3 gets its input from the stage after it.
  const CriticalPath path =
      path_of(R"({"worker": 0, "stage": 0}, {"worker": 1, "stage": 1})",
              {{kScheduler, at(0), event::LeaseGranted{.worker = WorkerId(0)}},
               operation(0, StageOperation::forward, 0, 1, {.took = 1}),
               operation(1, StageOperation::forward, 1, 3, {.took = 1, .before = 2}),
               operation(1, StageOperation::forward, 2, 5, {.took = 2}),
               operation(1, StageOperation::forward, 1, 7,
                         {.took = 2, .micro_batch = 1}),  // another operation
               operation(0, StageOperation::forward, 3, 8, {.took = 1, .after = 6}),
               operation(0, StageOperation::backward_inputs, 3, 9, {.took = 1})});
  CHECK(path.seconds == Approx(9));
  const auto spent = seconds_of(path);
  CHECK(spent.at({Activity::computing, 0}) == Approx(3));
  CHECK(spent.at({Activity::computing, 1}) == Approx(3));
  CHECK(spent.at({Activity::message, 1}) == Approx(2));  // from 5 to 7
  CHECK(spent.at({Activity::message, 0}) == Approx(1));  // from 1 to 2
  CHECK(spent.size() == 4);
}

TEST_CASE("a stage that waited for weights after its input has that wait on the path") {
  const double input = GENERATE(2.0, 6.0);  // end of the computation that gives the input
  const CriticalPath path =
      path_of(R"({"worker": 0, "stage": 0}, {"worker": 1, "stage": 1})",
              {{kScheduler, at(0), event::LeaseGranted{.worker = WorkerId(0)}},
               operation(0, StageOperation::forward, 0, input, {.took = input}),
               operation(1, StageOperation::forward, 1, 8, {.took = 1, .before = 3, .other = 4})});
  const auto spent = seconds_of(path);
  CHECK(spent.at({Activity::computing, 1}) == Approx(1));
  CHECK(spent.at({Activity::computing, 0}) == Approx(input));
  if (input < 3) {  // the input came at 3, and the weights at 7
    CHECK(spent.at({Activity::undivided, 1}) == Approx(4));
    CHECK(spent.at({Activity::message, 0}) == Approx(1));
  } else {  // the weights came first
    CHECK(spent.at({Activity::message, 0}) == Approx(1));
    CHECK(spent.size() == 3);
  }
}

TEST_CASE("the path leads through an empty iteration to the computation before it") {
  // The empty push of worker 1 lets worker 0 continue.
  const WorkerId id(0);
  const Iteration next(2);
  const CriticalPath path =
      path_of(R"({"worker": 0}, {"worker": 1})",
              {started(0, 1, 0, 0),
               started(1, 0, 0, 0),
               finished(0, 1, 1),
               {shard(0), at(1), event::PullParked{id, next, {}}},
               finished(1, 0, 6),
               started(1, 1, 7, 1),
               {worker(1), at(7), event::StepFinished{WorkerId(1), Iteration(1), 0}},
               {shard(0), at(7), event::ClockMoved{WorkerId(1), Clock(2)}},
               {shard(0), at(7), event::PullReleased{id, next, WorkerId(1)}},
               {shard(0), at(7), event::PullAnswered{id, next, {}, {}}},
               started(0, 2, 7, 6),
               finished(0, 2, 9)});
  const auto spent = seconds_of(path);
  CHECK(spent.at({Activity::computing, 0}) == Approx(2));
  CHECK(spent.at({Activity::weights, 1}) == Approx(1));
  CHECK(spent.at({Activity::computing, 1}) == Approx(6));
  CHECK(spent.size() == 3);
}

TEST_CASE("an iteration that was given up is no computation, also if its end is reported later") {
  const CriticalPath path =
      path_of(R"({"worker": 0})", {started(0, 0, 1, 0),
                                   finished(0, 0, 2),
                                   started(0, 1, 2, 0),
                                   {kScheduler, at(5), event::Evicted{WorkerId(0)}},
                                   finished(0, 1, 5.5),
                                   started(0, 2, 6, 0),
                                   finished(0, 2, 9)});
  const auto spent = seconds_of(path);
  CHECK(spent.at({Activity::computing, 0}) == Approx(4));
  CHECK(spent.at({Activity::unknown, 0}) == Approx(4));
}

TEST_CASE("the path leads through the time in which a worker was lost and not yet removed") {
  const WorkerId id(0), lost(1);
  const Iteration next(1);
  const CriticalPath path = path_of(R"({"worker": 0}, {"worker": 1})",
                                    {started(0, 0, 0, 0),
                                     started(1, 0, 0, 0),
                                     finished(0, 0, 2),
                                     {shard(0), at(2), event::PullParked{id, next, {}}},
                                     finished(1, 0, 3),
                                     {shard(0), at(3.5), event::ClockMoved{lost, Clock(1)}},
                                     {shard(0), at(7), event::Removed{lost}},
                                     {shard(0), at(7), event::PullReleased{id, next, lost}},
                                     {shard(0), at(7), event::PullAnswered{id, next, {}, {}}},
                                     started(0, 1, 7, 5),
                                     finished(0, 1, 8)});
  const auto spent = seconds_of(path);
  CHECK(spent.at({Activity::computing, 0}) == Approx(1));
  CHECK(spent.at({Activity::unknown, 1}) == Approx(4));
  CHECK(spent.at({Activity::computing, 1}) == Approx(3));
  CHECK(spent.size() == 3);
}

TEST_CASE("the path ends with the last iteration whose samples count, and begins with the run") {
  const CriticalPath path =
      path_of(R"({"worker": 0})", {{kScheduler, at(1), event::LeaseGranted{.worker = WorkerId(0)}},
                                   started(0, 0, 2, 1.5),  // waits since before the run's begin
                                   finished(0, 0, 4),
                                   started(0, 1, 4, 0),
                                   {worker(0), at(6), event::StepFinished{{}, Iteration(1), 0}}});
  CHECK(path.seconds == Approx(3));
  CHECK(seconds_of(path).at({Activity::computing, 0}) == Approx(2));
}

TEST_CASE("a run without a computation has no critical path") {
  const TemporaryFolder folder;
  folder.write("result.json", R"({"workers": []})");
  CHECK_THAT(find_critical_path(folder.path("")).error().text, Contains("events.bin"));
  write_events(folder, {{kScheduler, at(0), event::Evicted{WorkerId(0)}}});
  CHECK_THAT(find_critical_path(folder.path("")).error().text,
             Contains("has no iteration that has ended"));
}

}  // namespace leeway::blame
