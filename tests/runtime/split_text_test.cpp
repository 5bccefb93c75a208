#include "runtime/flags/split_text.hpp"

#include <catch2/catch.hpp>

#include "runtime/flags/delay_text.hpp"
#include "runtime/words.hpp"

namespace leeway {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("--split-data reads what it writes, and fills in usual numbers") {
  for (const std::string text : {"shared", "iid", "dirichlet(0.1)", "by_label(3)"})
    CHECK(text_of(*parse_split_data(text)) == text);
  CHECK(*parse_split_data("dirichlet") == dirichlet(0.5));
  CHECK(*parse_split_data("by_label") == by_label(2));
  CHECK(*parse_split_data("by_label(0)") == by_label(0));  // the plan's check names its range
  for (const char* wrong : {"", "even", "dirichlet(", "dirichlet(1,2)", "by_label(1.5)",
                            "by_label(-1)", "by_label(1e12)", "iid(2)"})
    CHECK_THAT(parse_split_data(wrong).error().text, Contains("give shared, iid, dirichlet(0.5)"));
}

TEST_CASE("--delay-policy reads what it writes") {
  for (const std::string text :
       {"plain", "lag_scaled(0.5)", "lag_scaled(1,500)", "delay_adaptive(0.2)", "gap_aware(0.9)",
        "delay_compensated(0.1)", "delay_compensated(2,0.5)", "ordered_momentum",
        "delay_threshold(3)", "fed_buff(10,0.5)", "fed_async(0.5,1)", "fed_async(0.5,10,4)"})
    CHECK(text_of(*parse_delay_policy(text)) == text);
  CHECK(*parse_delay_policy("delay_threshold") == delay_threshold(4));
  for (const char* wrong : {"delay_threshold(1,2)", "fed_async(0.5,0,4)", "fed_async(1,2,3,4)"})
    CHECK_THAT(parse_delay_policy(wrong).error().text,
               Contains("delay_threshold(4)") && Contains("fed_async(0.6,10,4)"));
}

}  // namespace
}  // namespace leeway
