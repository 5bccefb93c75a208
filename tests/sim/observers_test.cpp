// Letters, and the record of recent events.
#include "sim/observers.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

namespace leeway::sim {
namespace {

const Address kOne = address_of(WorkerId(0)), kOther = address_of(WorkerId(1));

}  // namespace

TEST_CASE("a letter returns its body by type and is decoded once") {
  const Letter letter(kOne, kScheduler, encode({.body = msg::Idle{Clock(3)}}));
  CHECK_FALSE(letter.opened());
  CHECK(letter.as<msg::Join>() == nullptr);
  CHECK(letter.opened());
  const auto* idle = letter.as<msg::Idle>();
  REQUIRE(idle);
  CHECK(idle->clock == Clock(3));
  CHECK(letter.as<msg::Idle>() == idle);  // decoded once
}

TEST_CASE("a malformed letter has no body") {
  const Letter letter(kOne, kScheduler, Message({1, 2, 3}, {}));
  CHECK(letter.open() == nullptr);
  CHECK(letter.as<msg::Idle>() == nullptr);
  CHECK_FALSE(letter.opened());
}

TEST_CASE("a report has the last twenty events of the actors concerned") {
  Recent recent;
  for (int i = 0; i < 30; ++i)
    recent.event({i}, kOne, event::StepStarted{.worker = WorkerId(0), .samples = i});
  for (int i = 0; i < 4000; ++i)
    recent.event({i}, kOther, event::StepStarted{.worker = WorkerId(1)});
  const std::vector<Address> actors = {kOne};
  const std::string text = recent.about(actors);
  CHECK(std::count(text.begin(), text.end(), '\n') == 19);
  CHECK(text.find("samples 29") != std::string::npos);
  CHECK(text.find("samples 10") != std::string::npos);
  CHECK(text.find("samples 9") == std::string::npos);
  CHECK(text.find("worker 1") == std::string::npos);
}

}  // namespace leeway::sim
