#include "policies/straggler/straggler.hpp"

#include <rapidcheck/catch.h>

#include <cmath>

using namespace leeway;

namespace {

std::string error_of(const std::string& text) {
  const auto parsed = parse_straggler(text);
  return parsed ? "" : parsed.error().text;
}

struct Observed {
  double share;       // of slow iterations
  double mean_burst;  // iterations
};

Observed observe(const plan::Straggler& spec, std::uint64_t seed) {
  constexpr int kIterations = 200'000;
  StragglerModel model(spec, seed);
  int slow = 0, bursts = 0;
  bool before = false;
  for (int i = 0; i < kIterations; ++i) {
    const bool now = model.next() > 1;
    slow += now;
    bursts += now && !before;
    before = now;
  }
  return {static_cast<double>(slow) / kIterations, bursts ? static_cast<double>(slow) / bursts : 0};
}

}  // namespace

TEST_CASE("a straggler of share 1 is always slow, and one of share 0 never", "[straggler]") {
  StragglerModel always({.worker = 1, .factor = 3, .share = 1, .burst = 5}, 7);
  StragglerModel never({.worker = 1, .factor = 3, .share = 0, .burst = 5}, 7);
  for (int i = 0; i < 1000; ++i) {
    REQUIRE(always.next() == 3);
    REQUIRE(never.next() == 1);
  }
}

TEST_CASE("bursts have the share and the mean length that were asked for", "[straggler]") {
  const auto seen = observe({.worker = 2, .factor = 4, .share = 0.2, .burst = 20}, 3);
  REQUIRE(std::abs(seen.share - 0.2) < 0.02);
  REQUIRE(std::abs(seen.mean_burst - 20) < 1.5);
}

TEST_CASE("the share holds where single slow iterations could not cover it", "[straggler]") {
  const auto seen = observe({.worker = 2, .factor = 4, .share = 0.9, .burst = 1}, 3);
  REQUIRE(std::abs(seen.share - 0.9) < 0.01);
  REQUIRE(std::abs(seen.mean_burst - 9) < 0.5);
}

TEST_CASE("a run begins slow as often as it is slow", "[straggler]") {
  int slow = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed)
    slow +=
        StragglerModel({.worker = 0, .factor = 2, .share = 0.5, .burst = 1000}, seed).next() > 1;
  REQUIRE(std::abs(slow - 1000) < 120);
}

TEST_CASE("slow-downs depend on seed and worker alone", "[straggler]") {
  const auto draw = [](std::uint32_t worker, std::uint64_t seed) {
    StragglerModel model({.worker = worker, .factor = 2, .share = 0.5, .burst = 3}, seed);
    std::vector<double> factors;
    for (int i = 0; i < 100; ++i) factors.push_back(model.next());
    return factors;
  };
  REQUIRE(draw(1, 1) == draw(1, 1));
  REQUIRE(draw(1, 1) != draw(2, 1));
  REQUIRE(draw(1, 1) != draw(1, 2));
}

TEST_CASE("a straggler is read from text, with and without its bursts", "[straggler]") {
  const auto read = [](const std::string& text) { return *parse_straggler(text); };
  REQUIRE(read("3:4x") == plan::Straggler{.worker = 3, .factor = 4});
  REQUIRE(read("0:1.5x@20%") == plan::Straggler{.worker = 0, .factor = 1.5, .share = 0.2});
  REQUIRE(read("12:4x@2.5%/7") ==
          plan::Straggler{.worker = 12, .factor = 4, .share = 0.025, .burst = 7});
}

TEST_CASE("text that is no straggler is refused with what is wrong and how to write it",
          "[straggler]") {
  REQUIRE(error_of("3:4") ==
          "straggler: \"3:4\" has no 'x' after the factor; write worker:factor, as in 3:4x, or "
          "3:4x@20%/50 for bursts of 50 iterations that cover 20% of all");
  for (const std::string text :
       {"", ":", "3", "3:", "-1:4x", "a:4x", "3:0.5x", "3:infx", "3:nanx", "3:4x@", "3:4x@20",
        "3:4x@0%", "3:4x@101%", "3:4x@nan%", "3:4x@20%/", "3:4x@20%/0", "3:4x ", "3:4x@20%/5 ",
        "99999999999:4x"}) {
    INFO(text);
    REQUIRE(error_of(text).find("; write ") != std::string::npos);
  }
}

TEST_CASE("no text makes the reader fail otherwise", "[straggler]") {
  rc::prop("any text", [](const std::string& text) {
    const auto parsed = parse_straggler(text);
    RC_ASSERT(parsed.has_value() || !parsed.error().text.empty());
  });
}
