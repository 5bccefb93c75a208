#include "dashboard/terminal.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "dashboard/state.hpp"

namespace leeway::dashboard {
namespace {

using Catch::Matchers::Contains;

/// Characters of UTF-8 text.
std::size_t characters(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char one) { return (static_cast<unsigned char>(one) & 0xc0) != 0x80; }));
}

std::string screen(std::uint32_t workers, const std::string& name, std::uint64_t lost = 0) {
  RunHistory run(
      {.name = name, .kind = "threads", .policy = "ssp(2)", .workers = workers, .bound = 2});
  const Instant now = Instant{} + seconds(5);
  for (std::uint32_t id = 0; id < workers; ++id) {
    run.event(shard(0), now, event::Admitted{WorkerId(id), Iteration(0)});
    run.event(shard(0), now, event::PullAnswered{WorkerId(id), Iteration(id % 3), Clock(0), {}});
    run.event(worker(id), now, event::StepStarted{WorkerId(id), Iteration(id % 3), 10, seconds(1)});
  }
  return screen_of(nlohmann::json::parse(text_of(state_of(run, {.lost_events = lost}))), {80, 24});
}

}  // namespace

TEST_CASE("a screen fits the terminal, for few and for many workers") {
  for (const std::uint32_t workers : {1u, 4u, 1000u}) {
    std::istringstream lines(screen(workers, "tiny"));
    int count = 0;
    for (std::string line; std::getline(lines, line); ++count) CHECK(characters(line) <= 80);
    CHECK(count <= 24);
  }
}

TEST_CASE("a screen has the run, its causes and its workers, without control characters") {
  const std::string text = screen(4, "tiny\x1b[31m");
  CHECK_THAT(text, Contains("tiny?[31m, threads, ssp(2), 4 workers"));
  CHECK_THAT(text, Contains("Waiting for requests costs"));
  CHECK_THAT(text, Contains("worker 3"));
  CHECK(text.find('\x1b') == std::string::npos);
}

TEST_CASE("a screen says that events were lost, if any were") {
  CHECK_THAT(screen(4, "tiny", 1234), Contains("1,234 events came faster"));
  CHECK_THAT(screen(4, "tiny"), !Contains("faster"));
}

}  // namespace leeway::dashboard
