// Events: on the wire, by field, and by queries for any type.
#include "messages/event_queries.hpp"

#include <rapidcheck/catch.h>

#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "messages/node.hpp"
#include "tests/messages/any_events.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

constexpr std::size_t kTypes = std::variant_size_v<Event::variant>;

Event event_of_type(std::size_t type) {
  Event event;
  any(event, type);
  return event;
}

std::vector<std::string> field_names(const Event& event) {
  std::vector<std::string> names;
  for_each_field(event, [&](const char* name, const auto&) { names.emplace_back(name); });
  return names;
}

}  // namespace

TEST_CASE("an event of every type arrives at the program as the agent sent it") {
  rc::prop("round trip", [] {
    node::Events sent;
    for (std::size_t type = 0; type < kTypes; ++type)
      sent.events.push_back({static_cast<std::int64_t>(type), kScheduler, event_of_type(type)});
    const auto got = decode_node(encode(NodeEnvelope{1, sent}));
    if (!got) RC_FAIL(got.error().text);
    const auto& events = std::get<node::Events>(got->body).events;
    RC_ASSERT(events.size() == kTypes);
    for (std::size_t type = 0; type < kTypes; ++type) {
      RC_LOG() << name_of(sent.events[type].event);
      RC_ASSERT(events[type].event.index() == type);
      RC_ASSERT(events[type] == sent.events[type]);
    }
  });
}

TEST_CASE("events of two types are different, and have different names") {
  rc::prop("names", [] {
    std::set<std::string_view> names;
    for (std::size_t type = 0; type < kTypes; ++type) names.insert(name_of(event_of_type(type)));
    RC_ASSERT(names.size() == kTypes);
  });
  CHECK_FALSE(Event(event::Evicted{}) == Event(event::Left{}));
}

TEST_CASE("an event about an impossible worker or clock is refused by field") {
  const auto error = [](const Event& event) {
    const auto got = decode_node(encode(NodeEnvelope{1, node::Events{{{0, kScheduler, event}}}}));
    return got ? std::string() : got.error().text;
  };
  CHECK(error(event::Evicted{WorkerId(65536)}) ==
        "events: events[0].event.evicted.worker is 65536, must be below 65536");
  CHECK(error(event::ClockMoved{WorkerId(0), Clock(-1)}) != "");
  CHECK(error(event::Refused{WorkerId(65536), {}, {}}) == "");  // the sender is unknown
}

TEST_CASE("a visitor gets the members of an event by name, in order") {
  CHECK(field_names(event::PullParked{}) ==
        std::vector<std::string>{"worker", "iteration", "min_clock"});
  CHECK(field_names(event::StageComputed{}) ==
        std::vector<std::string>{"worker", "operation", "iteration", "chunk", "micro_batch", "pull",
                                 "computed_ns", "waited_ns", "waited_before_ns",
                                 "waited_after_ns"});
}

TEST_CASE("the hash of an event depends on its type and numbers, not on texts and durations") {
  CHECK(hash_of(event::Evicted{}) != hash_of(event::Left{}));
  // Equal if the type were only combined with the first number.
  CHECK(hash_of(event::Evicted{WorkerId(0)}) != hash_of(event::Left{WorkerId(3)}));
  CHECK(hash_of(event::PullParked{.worker = WorkerId(2)}) !=
        hash_of(event::BucketRepeated{.worker = WorkerId(0)}));
  CHECK(hash_of(event::PullParked{.iteration = Iteration(1)}) !=
        hash_of(event::PullParked{.min_clock = Clock(1)}));
  CHECK(hash_of(event::Malformed{{}, "loss is 0.1"}) == hash_of(event::Malformed{}));
  CHECK(hash_of(event::StepStarted{.waited = seconds(1)}) == hash_of(event::StepStarted{}));
}

TEST_CASE("an event that names no worker or no iteration concerns none") {
  CHECK(worker_of(event::Fenced{.worker = WorkerId(3)}) == WorkerId(3));
  CHECK(worker_of(event::SnapshotTaken{}) == std::nullopt);
  CHECK(iteration_of(event::SnapshotTaken{.iteration = Iteration(5)}) == Iteration(5));
  CHECK(iteration_of(event::Removed{}) == std::nullopt);
}
