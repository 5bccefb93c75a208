#include <catch2/catch.hpp>

#include "runtime/flags/fault_text.hpp"

namespace leeway {
namespace {

constexpr Address kWorker2{RoleKind::worker, 2}, kShard0{RoleKind::shard, 0};

std::string refusal(const std::string& text) {
  const auto fault = parse_fault(text);
  return fault ? "" : fault.error().text;
}

}  // namespace

TEST_CASE("every kind of fault has a syntax") {
  const auto [text, expected] = GENERATE(table<std::string, plan::Fault>({
      {"2:throws@100", {kWorker2, std::int64_t{100}, 0, plan::Throws{}}},
      {"worker2:killed@100", {kWorker2, std::int64_t{100}, 0, plan::Killed{}}},
      {"2:crash@3s", {kWorker2, 3.0, 0, plan::Crash{}}},
      {"2:crash(500ms)@3s", {kWorker2, 3.0, 0, plan::Crash{0.5}}},
      {"2:joins@250ms", {kWorker2, 0.25, 0, plan::Joins{}}},
      {"2:leaves@100", {kWorker2, std::int64_t{100}, 0, plan::Leaves{}}},
      {"2:freeze(2s)@7", {kWorker2, std::int64_t{7}, 0, plan::Freeze{2}}},
      {"scheduler:slow(5ms,2s)@1s", {kScheduler, 1.0, 0, plan::Slow{5, 2}}},
      {"2:break(shard0,100ms)@1s", {kWorker2, 1.0, 0, plan::Breaks{kShard0, 0.1}}},
      {"2:delay(shard0,5ms,2s)@1s", {kWorker2, 1.0, 0, plan::Delay{kShard0, 5, 2}}},
      {"2:silence(scheduler,2s)@1s", {kWorker2, 1.0, 0, plan::Silence{kScheduler, 2}}},
      {"2:partition(2s)@1s", {kWorker2, 1.0, 0, plan::Partition{{}, 2}}},
      {"2:partition(2+shard0,2s)@1s", {kWorker2, 1.0, 0, plan::Partition{{kWorker2, kShard0}, 2}}},
      {"shard0:slow-link(10x,2s)@1s", {kShard0, 1.0, 0, plan::SlowLink{10, 2}}},
      {"2:stop-clock(2s)@1s", {kWorker2, 1.0, 0, plan::ClockStops{2}}},
      {"node5:competes(2s)@1s", {{RoleKind::node, 5}, 1.0, 0, plan::Competes{2}}},
      {"2:crash@100~50", {kWorker2, std::int64_t{100}, 50, plan::Crash{}}},
      {"2:crash@1s~500ms", {kWorker2, 1.0, 0.5, plan::Crash{}}},
  }));
  INFO(text << ": " << refusal(text));
  const auto fault = parse_fault(text);
  REQUIRE(fault.has_value());
  CHECK(*fault == expected);
}

TEST_CASE("the error for an invalid fault shows an example") {
  using Catch::Matchers::Contains;
  CHECK_THAT(refusal(""), Contains("write 2:crash@3s"));
  CHECK_THAT(refusal("2"), Contains("is missing the ':' after \"2\""));
  CHECK_THAT(refusal("2@100"), Contains("is missing the ':' after \"2\""));
  CHECK_THAT(refusal("2:crush@3s"), Contains("unknown fault \"crush\"; did you mean \"crash\"?"));
  CHECK_THAT(refusal("2:crash"),
             Contains("is missing the '@' after \"2:crash\"; write 2:crash@3s"));
  CHECK_THAT(refusal("2:freeze@3s"), Contains("is missing the '(' after"));
  CHECK_THAT(refusal("2:freeze(3)@3s"),
             Contains("is missing the time, such as 200ms or 2s, after"));
  CHECK_THAT(refusal("2:break(100ms)@3s"), Contains("write 2:break(shard0,100ms)@1s"));
  CHECK_THAT(refusal("2:crash@x"), Contains("is missing the iteration or time after"));
  CHECK_THAT(refusal("2:crash@3s and more"), Contains("has unexpected text after \"2:crash@3s\""));
  CHECK_THAT(refusal("monitor:crash@3s"), Contains("worker's number, worker2, shard0"));
}

}  // namespace leeway
