// The text form of stragglers.
#include "policies/straggler/text.hpp"

#include <catch2/catch.hpp>

using namespace leeway;

namespace {

std::string refusal_of(const std::string& text) {
  const auto parsed = parse_straggler(text);
  return parsed ? "" : parsed.error().text;
}

}  // namespace

TEST_CASE("a straggler of each kind is read from text", "[straggler]") {
  const auto [text, expected] = GENERATE(table<std::string, plan::Straggler>({
      {"3:4x", {3, false, plan::ConstantFactor{4}}},
      {"all:1.5x", {0, true, plan::ConstantFactor{1.5}}},
      {"0:1.5x@20%", {0, false, plan::Bursts{1.5, 0.2, 50}}},
      {"12:4x@2.5%/7", {12, false, plan::Bursts{4, 0.025, 7}}},
      {"all:pareto(1.5)", {0, true, plan::Pareto{1.5, 100}}},
      {"1:pareto(2,20x)", {1, false, plan::Pareto{2, 20}}},
      {"3:pauses(200ms/50)", {3, false, plan::Pauses{200, std::uint32_t{50}}}},
      {"3:pauses(2s/0.5s)", {3, false, plan::Pauses{2000, 0.5}}},
      {"3:pauses(1.5ms/250ms)", {3, false, plan::Pauses{1.5, 0.25}}},
      {"2:decay(8x/1000)", {2, false, plan::Decay{8, 1000}}},
      {"1:sharing(3x,100/300)", {1, false, plan::Sharing{3, 100, 300}}},
      {"0:trace(a (1).txt)", {0, false, plan::Trace{"a (1).txt"}}},
      {"1:sharing(3x,100/300,50)", {1, false, plan::Sharing{3, 100, 300, 50}}},
      {"3:repeated(4,4x,1,1)", {3, false, plan::Repeated{{4, 4, 1, 1}}}},
      {"3:delay(5ms)", {3, false, plan::FixedDelay{5}}},
      {"3:custom(warms up)", {3, false, plan::CustomStraggler{"warms up"}}},
      {"2+3+5:4x@20%", {0, false, plan::Bursts{4, 0.2, 50}, {2, 3, 5}}},
      {"3:4x@from=50%", {3, false, plan::ConstantFactor{4}, {}, 0.5}},
      {"3:4x@20%/7@from=100", {3, false, plan::Bursts{4, 0.2, 7}, {}, std::int64_t{100}}},
      {"all:pareto(1.5)@from=25%", {0, true, plan::Pareto{1.5, 100}, {}, 0.25}},
  }));
  INFO(text << ' ' << refusal_of(text));
  REQUIRE(*parse_straggler(text) == expected);
}

TEST_CASE("the error of an invalid straggler names the missing element and the correct form",
          "[straggler]") {
  REQUIRE(refusal_of("3:4") ==
          "--slow: \"3:4\" is missing the 'x' after \"3:4\"; write 3:4x, or 3:4x@20%/50 for bursts "
          "of 50 "
          "iterations that cover 20% of all");
  REQUIRE(refusal_of("1:decay(8x)") ==
          "--slow: \"1:decay(8x)\" is missing the '/' after \"1:decay(8x\"; write 3:decay(8x/1000) "
          "for a "
          "rise to 8x over 1000 iterations");
  REQUIRE(refusal_of("slow") ==
          "--slow: \"slow\" does not begin with a worker's number or \"all\"; write 3:4x, or "
          "3:4x@20%/50 for bursts of 50 iterations that cover 20% of all");
  for (const std::string text : {"",
                                 ":",
                                 "3",
                                 "3:",
                                 "-1:4x",
                                 "a:4x",
                                 "3:4x@",
                                 "3:4x@20",
                                 "3:4x@20%/",
                                 "3:4x ",
                                 "3:4x@20%/5 ",
                                 "3:4x@20%/-1",
                                 "99999999999:4x",
                                 "all4x",
                                 "all",
                                 "all:",
                                 "1:pareto",
                                 "1:pareto()",
                                 "1:pareto(1.5",
                                 "1:pareto(1.5,)",
                                 "1:pareto(1.5,20)",
                                 "1:pareto(1.5)x",
                                 "1:pauses(200/50)",
                                 "1:pauses(200ms)",
                                 "1:pauses(200ms/)",
                                 "1:pauses(200ms/5.5)",
                                 "1:decay(8/10)",
                                 "1:decay(8x/-1)",
                                 "1:sharing(3x)",
                                 "1:sharing(3x,100)",
                                 "1:sharing(3x/100/300)",
                                 "1:sharing(3x,100/300,)",
                                 "1:repeated()",
                                 "1:repeated(4,)",
                                 "1:delay(5)",
                                 "1:custom()",
                                 "1+:4x",
                                 "1+all:4x",
                                 "3:4x@from=",
                                 "3:4x@from=50%x",
                                 "3:4x@from=-1",
                                 "3:4x@from=1@from=2",
                                 "1:trace()",
                                 "1:trace",
                                 "1:trace(x",
                                 "1:trace(x) "}) {
    INFO(text);
    REQUIRE(refusal_of(text).find("; write 3:") != std::string::npos);
  }
}

TEST_CASE("the error of an unknown kind of straggler suggests the nearest one", "[straggler]") {
  REQUIRE(refusal_of("3:paretto(2)") ==
          "--slow: \"3:paretto(2)\": there is no kind of straggler named \"paretto\"; did you mean "
          "\"pareto\"?");
  REQUIRE(refusal_of("3:zzzzzzzzzz(2)")
              .ends_with("; known are pareto, pauses, decay, sharing, "
                         "repeated, delay, custom, trace"));
}

TEST_CASE("any text is read as a straggler or refused with a remedy", "[straggler]") {
  const auto answered = [](const std::string& text) {
    const auto parsed = parse_straggler(text);
    return parsed ? true : parsed.error().text.find("; ") != std::string::npos;
  };
  rc::prop("any text", [&](const std::string& text) { RC_ASSERT(answered(text)); });
  rc::prop("a prefix of a valid text", [&] {
    const std::string valid = *rc::gen::element<std::string>(
        "3:4x@20%/50", "all:pareto(1.5,20x)", "3:pauses(200ms/50)", "3:pauses(200ms/2s)",
        "3:decay(8x/1000)", "3:sharing(3x,100/300)", "3:trace(f.txt)");
    RC_ASSERT(answered(valid.substr(0, *rc::gen::inRange<std::size_t>(0, valid.size()))));
  });
}
