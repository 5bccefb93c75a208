// A feed counts what a run reports in the order in which it happened.
#include "dashboard/feed.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace leeway::dashboard {
namespace {

using Json = nlohmann::json;

RunInfo info() {
  return {.name = "tiny", .kind = "threads", .policy = "ssp(2)", .workers = 2, .bound = 2};
}

Instant after(std::int64_t ms) {
  return Instant{} + milliseconds(ms);
}

Json state_of(Feed& feed) {
  return Json::parse(feed.state().json);
}

}  // namespace

TEST_CASE("events come before the reports that follow them") {
  for (int i = 0; i < 20; ++i) {
    Feed feed(info(), Feed::IfFull::lose);
    feed.event(shard(0), after(1), event::Admitted{WorkerId(1), Iteration(0)});
    feed.event(shard(0), after(2), event::PullParked{WorkerId(1), Iteration(3), Clock(0)});
    feed.event(kScheduler, after(3), event::Evicted{WorkerId(1)});
    feed.evicted(WorkerId(1), msg::Evicted{.reason = "it was killed"});
    RunTotals totals;
    totals.last.now = after(5);
    feed.ended(totals);
    const Json state = state_of(feed);
    CHECK(state["blocked"].empty());
    REQUIRE(state["marks"].size() == 2);
    CHECK(state["marks"][0]["text"] == "worker 1 was evicted: it was killed");
    CHECK(state["marks"][1]["kind"] == "end");
    CHECK(feed.state().has_ended);
  }
}

TEST_CASE("events of other nodes are counted by time, although they come late") {
  Feed feed(info(), Feed::IfFull::lose, milliseconds(300));
  const WorkerId id(0);
  // The worker's node sends its batch before the shard's node.
  feed.event(worker(0), after(2000), event::StepStarted{id, Iteration(1), 10, milliseconds(900)});
  feed.event(worker(0), after(2010), event::StepFinished{id, Iteration(1), 10});
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  feed.event(shard(0), after(1200), event::PullParked{id, Iteration(1), Clock(0)});
  feed.event(shard(0), after(1900), event::PullReleased{id, Iteration(1), WorkerId(1)});
  feed.event(shard(0), after(1900), event::PullAnswered{id, Iteration(1), Clock(1), Clock(1)});
  feed.failed("the end");
  const Json state = state_of(feed);
  const Json& first = state["causes"][0];
  CHECK(state["cause_names"][first["cause"].get<std::size_t>()] == "worker 1");
  CHECK(first["seconds"].get<double>() == Approx(0.7));
}

TEST_CASE("the page of a run names no folders of the machine") {
  Feed feed(info(), Feed::IfFull::lose);
  feed.checkpointed({.now = after(1), .number = 3, .error = "/home/me/run/3: cannot be written"});
  feed.evaluated({.now = after(2), .error = "/home/me/data.csv: cannot be read"});
  feed.evicted(WorkerId(1), msg::Evicted{.reason = "\"/home/me/plan.json\" is missing"});
  feed.failed("/home/me/run: No space left on device");
  const Json state = state_of(feed);
  REQUIRE(state["marks"].size() == 4);
  CHECK(state["marks"][0]["text"] == "checkpoint 3 was not written: 3: cannot be written");
  CHECK(state["marks"][1]["text"] == "evaluation failed: data.csv: cannot be read");
  CHECK(state["marks"][2]["text"] == "worker 1 was evicted: \"plan.json\" is missing");
  CHECK(state["marks"][3]["text"] == "failed: run: No space left on device");
  CHECK(state["ended"]["text"] == "run: No space left on device");
}

TEST_CASE("each event is counted, or counted as lost") {
  constexpr std::uint64_t kEvents = 400'000;
  for (const auto if_full : {Feed::IfFull::lose, Feed::IfFull::wait}) {
    Feed feed(info(), if_full);
    for (std::uint64_t i = 0; i < kEvents; ++i)
      feed.event(worker(0), after(1), event::StepFinished{WorkerId(0), Iteration(0), 1});
    feed.failed("the end");
    const Json state = state_of(feed);
    const auto lost = state["totals"]["lost_events"].get<std::uint64_t>();
    std::uint64_t counted = 0;
    for (const Json& interval : state["intervals"]["list"])
      counted += interval["samples"].get<std::uint64_t>();
    CHECK(counted + lost == kEvents);
    if (if_full == Feed::IfFull::wait) CHECK(lost == 0);
    feed.lost(5);
    CHECK(state_of(feed)["totals"]["lost_events"] == lost + 5);
  }
}

}  // namespace leeway::dashboard
