// The lines of events.jsonl.
#include "monitoring/event_log.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/process.hpp"

using namespace leeway;
using leeway::test::TemporaryFolder;

namespace {

std::string line_of(const Event& event) {
  const TemporaryFolder folder;
  const std::string path = folder / "events.jsonl";
  EventLog(path).write(address_of(ShardId(1)), Instant{7}, event);
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

}  // namespace

TEST_CASE("a line has the time, the actor, the event and its named fields") {
  CHECK(line_of(event::PullAnswered{WorkerId(2), Iteration(5), Clock(4), Clock(6)}) ==
        R"({"ns":7,"actor":"shard 1","event":"pull_answered","worker":2,"iteration":5,)"
        R"("min_clock":4,"clock":6})");
  CHECK(line_of(event::Fenced{WorkerId(2), Clock(3), true}) ==
        R"({"ns":7,"actor":"shard 1","event":"fenced","worker":2,"clock":3,"partial":true})");
}

TEST_CASE("an enumerated field is logged by name") {
  using Operation = event::StageComputed::Operation;
  CHECK(line_of(event::StageComputed{WorkerId(1), Operation::backward_inputs, Iteration(5), 3, 2,
                                     Iteration(4)}) ==
        R"({"ns":7,"actor":"shard 1","event":"stage_computed","worker":1,)"
        R"("operation":"backward_inputs","iteration":5,"chunk":3,"micro_batch":2,"pull":4,)"
        R"("computed_ns":0,"waited_ns":0,"waited_before_ns":0,"waited_after_ns":0})");
  const auto json = nlohmann::json::parse(
      line_of(event::Refused{WorkerId(1), Iteration(2), msg::Refused::Reason::unknown_worker}));
  CHECK(json["reason"] == "unknown_worker");
}

TEST_CASE("a text with invalid bytes is logged as valid JSON") {
  const auto json =
      nlohmann::json::parse(line_of(event::Malformed{Iteration(1), "a \"quote\", \xff"}));
  CHECK(json["text"] == "a \"quote\", \xef\xbf\xbd");
}
