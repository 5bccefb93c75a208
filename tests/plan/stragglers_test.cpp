// Stragglers in plan files.
#include <catch2/catch.hpp>

#include "plan/plan.hpp"

using namespace leeway;

namespace {

Plan read(const Expected<Plan>& plan) {
  INFO((plan ? "" : plan.error().text));
  REQUIRE(plan);
  return *plan;
}
std::string error_in(const std::string& text) {
  const auto plan = plan_from_toml(text, "plan.toml");
  return plan ? "" : plan.error().text;
}

}  // namespace

TEST_CASE("a straggler is one worker or all, with one kind of slowdown") {
  const Plan plan = read(plan_from_toml(R"(
    stragglers = [{ worker = 3, factor = 2.5 }, { all = true, pareto.alpha = 2 },
                  { worker = 1, pauses = { length_ms = 5, seconds = 0.5 } },
                  { worker = 2, trace.file = "slow.txt" },
                  { worker = 3, repeated.factors = [4, 2.5, 1], from.share = 0.5 },
                  { together = [2, 3], fixed_delay.delay_ms = 5, from.iteration = 100 },
                  { worker = 1, custom.function = "warms-up" },
                  { worker = 1, sharing.phase = 7 }]
  )",
                                        "plan.toml"));
  const std::vector<plan::Straggler> expected = {
      {3, false, plan::ConstantFactor{2.5}},
      {0, true, plan::Pareto{2, 100}},
      {1, false, plan::Pauses{5, 0.5}},
      {2, false, plan::Trace{"slow.txt"}},
      {3, false, plan::Repeated{{4, 2.5, 1}}, {}, 0.5},
      {0, false, plan::FixedDelay{5}, {2, 3}, std::int64_t{100}},
      {1, false, plan::CustomStraggler{"warms-up"}},
      {1, false, plan::Sharing{4, 100, 300, 7}}};
  CHECK(plan.stragglers == expected);
  CHECK(read(plan_from_json(to_json(plan), "plan.json")).stragglers == expected);
  CHECK(error_in("stragglers = [{ decay = { factr = 2 } }]") ==
        "plan.toml:1: stragglers[0].decay.factr: unknown key; did you mean \"factor\"?");
  CHECK(error_in("stragglers = [{ factor = 2, pareto = {} }]") ==
        "plan.toml:1: stragglers[0].pareto: \"factor\" is given as well; keep one of the two");
  CHECK(error_in("stragglers = [{ pauses = { iterations = 2, seconds = 3 } }]") ==
        "plan.toml:1: stragglers[0].pauses.seconds: \"iterations\" is given as well; keep one of "
        "the two");
}
