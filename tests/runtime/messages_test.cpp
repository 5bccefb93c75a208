// `--trace-messages` and `leeway messages`, on threads and in simulation, with real programs.
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/process.hpp"

namespace leeway::test {
namespace {

using Catch::Contains;

const std::string kBin = LEEWAY_BIN;

std::vector<nlohmann::json> messages_of(const std::string& run, std::vector<std::string> flags) {
  std::vector<std::string> words{kBin + "/leeway", "messages", run, "--json"};
  words.insert(words.end(), flags.begin(), flags.end());
  const auto printed = run_program(words);
  REQUIRE(printed.code == 0);
  std::vector<nlohmann::json> all;
  std::istringstream lines(printed.out);
  for (std::string line; std::getline(lines, line);) all.push_back(nlohmann::json::parse(line));
  return all;
}

}  // namespace

TEST_CASE("a run keeps every message that reached an actor") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  const bool simulated = GENERATE(true, false);
  std::vector<std::string> words{kBin + "/linear-regression",
                                 "--trace-messages",
                                 "--quiet",
                                 "--epochs",
                                 "1",
                                 "--workers",
                                 "2",
                                 "--shards",
                                 "1",
                                 "--out",
                                 run};
  if (simulated) words.push_back("--simulate");
  const auto ran = run_program(words);
  INFO(ran.err);
  REQUIRE(ran.code == 0);
  const std::uint64_t iterations = read_json(run + "/result.json")["iterations"];
  const auto pushes = messages_of(run, {"--to", "shard0", "--kind", "push"});
  CHECK(pushes.size() == iterations);
  CHECK(messages_of(run, {"--from", "shard0", "--kind", "pushed"}).size() == iterations);
  std::int64_t before = 0;
  for (const auto& push : pushes) {
    CHECK(push["ns"] >= before);
    before = push["ns"];
    CHECK(push["tensor_bytes"] >= 8);  // one weight and one bias
  }
  const auto printed =
      run_program({kBin + "/leeway", "messages", run, "--from", "worker1", "--limit", "2"});
  CHECK_THAT(printed.out, Contains("worker1 -> "));
  CHECK(std::count(printed.out.begin(), printed.out.end(), '\n') == 2);
}

TEST_CASE("the capnp tool reads the messages of a run") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  REQUIRE(run_program({kBin + "/linear-regression", "--trace-messages", "--quiet", "--epochs", "1",
                       "--simulate", "--out", run})
              .code == 0);
  const std::string decode = std::string(CAPNP_EXECUTABLE) + " decode -I" + LEEWAY_SOURCE_DIR +
                             " " + LEEWAY_SOURCE_DIR + "/messages/trace.capnp MessageRecord < " +
                             run + "/messages.bin";
  const auto decoded = run_program({"/bin/sh", "-c", decode});
  INFO(decoded.err);
  CHECK(decoded.code == 0);
  CHECK_THAT(decoded.out, Contains("from = \"worker0\"") && Contains("push = ("));
}

TEST_CASE("wrong arguments of leeway messages are refused with a remedy") {
  const TemporaryFolder folder;
  const auto refused = [&](std::vector<std::string> flags) {
    std::vector<std::string> words{kBin + "/leeway", "messages", folder / "run"};
    words.insert(words.end(), flags.begin(), flags.end());
    const auto ran = run_program(words);
    CHECK(ran.code == 2);
    return ran.err;
  };
  CHECK_THAT(refused({}), Contains("--trace-messages"));
  CHECK_THAT(refused({"--kind", "pul"}), Contains("did you mean \"pull\"?"));
  CHECK_THAT(refused({"--from", "wrker2"}), Contains("--from: "));
  const auto no_folder = run_program({kBin + "/linear-regression", "--trace-messages", "--no-out"});
  CHECK(no_folder.code == 2);
  CHECK_THAT(no_folder.err, Contains("--trace-messages writes into the run folder"));
}

}  // namespace leeway::test
