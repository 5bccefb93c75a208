#include "blame/critical_path.hpp"

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
        "The longest part of the critical path, 60.00%, is computing of worker 1.");
}

TEST_CASE("the path of a pipeline leads to the stage whose activation or gradient was awaited") {
  using Operation = event::StageComputed::Operation;
  const auto computed = [](std::uint32_t id, Operation operation, double end, double took,
                           double before, double after) {
    return TimedEvent{worker(id), at(end),
                      event::StageComputed{.worker = WorkerId(id),
                                           .operation = operation,
                                           .chunk = id,
                                           .computed = at(took),
                                           .waited = at(before + after),
                                           .waited_before = at(before),
                                           .waited_after = at(after)}};
  };
  const CriticalPath path =
      path_of(R"({"worker": 0, "stage": 0}, {"worker": 1, "stage": 1})",
              {{kScheduler, at(0), event::LeaseGranted{.worker = WorkerId(0)}},
               computed(0, Operation::forward, 1, 1, 0, 0),
               computed(1, Operation::forward, 4, 2, 2, 0),
               computed(1, Operation::backward_inputs, 8, 4, 0, 0),
               computed(0, Operation::backward_inputs, 11, 2, 0, 8)});
  CHECK(path.seconds == Approx(11));
  const auto spent = seconds_of(path);
  CHECK(spent.at({Activity::computing, 0}) == Approx(3));
  CHECK(spent.at({Activity::computing, 1}) == Approx(6));
  CHECK(spent.at({Activity::message, 0}) == Approx(1));  // its activation
  CHECK(spent.at({Activity::message, 1}) == Approx(1));  // its gradient
  CHECK(spent.size() == 4);
}

TEST_CASE("an iteration that was given up is no computation") {
  const CriticalPath path =
      path_of(R"({"worker": 0})", {started(0, 0, 1, 0),
                                   finished(0, 0, 2),
                                   started(0, 1, 2, 0),
                                   {kScheduler, at(5), event::Evicted{WorkerId(0)}},
                                   started(0, 2, 6, 0),
                                   finished(0, 2, 9)});
  const auto spent = seconds_of(path);
  CHECK(spent.at({Activity::computing, 0}) == Approx(4));
  CHECK(spent.at({Activity::other, 0}) == Approx(4));
}

TEST_CASE("a run without computations has no critical path") {
  const TemporaryFolder folder;
  folder.write("result.json", R"({"workers": []})");
  CHECK_THAT(find_critical_path(folder.path("")).error().text, Contains("events.bin"));
  write_events(folder, {{kScheduler, at(0), event::Evicted{WorkerId(0)}}});
  CHECK_THAT(find_critical_path(folder.path("")).error().text,
             Contains("has no iteration of a worker"));
}

}  // namespace leeway::blame
