#include "monitoring/pipeline_picture.hpp"

#include <rapidcheck/catch.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <sstream>

#include "core/text.hpp"

using namespace leeway;
using namespace leeway::pipeline;
using Catch::Contains;

namespace {

struct Played {
  Table table;
  Timeline timeline;
};

Played played(const Spec& spec, const OpCosts& costs = {}, std::int64_t communication = 0) {
  auto table = make_table(spec);
  LW_CHECK(table.has_value(), table ? "" : table.error().text);
  auto timeline = play(*table, Costs::equal(table->model_chunks(), costs, communication));
  LW_CHECK(timeline.has_value(), timeline ? "" : timeline.error().text);
  return {std::move(*table), std::move(*timeline)};
}

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

/// Removes the colours.
std::string plain(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') i = text.find('m', i) + 1;
    if (i < text.size() && text[i] == '\x1b') {
      --i;
      continue;
    }
    if (i < text.size()) out += text[i];
  }
  return out;
}

}  // namespace

TEST_CASE("the picture of 1f1b matches the literature") {
  const auto [table, timeline] = played({"1f1b", 3, 3}, {1, 1, 0, 0});
  CHECK(pipeline_text(table, timeline) ==
        "stage 0  F0 F1 F2 ......B0 ...B1 ...B2|\n"
        "stage 1  ...F0 F1 ...B0 F2 B1 ...B2|...\n"
        "stage 2  ......F0 B0 F1 B1 F2 B2|......\n");
  CHECK(pipeline_legend(table) == "F forward, B backward, | or U update, . idle");
}

TEST_CASE("operations are as wide as their duration, and long pictures are wrapped") {
  const auto [table, timeline] = played({"zb_h1", 2, 2}, {2, 4, 2, 2}, 1);
  CHECK(pipeline_text(table, timeline, {.columns = 36}) ==
        "time 0\n"
        "stage 0  F0 F1 .........I0    W0 I1\n"
        "stage 1  ....F0 I0    F1 I1    W0 W1\n"
        "\n"
        "time 18\n"
        "stage 0     W1 U1\n"
        "stage 1   U1 .....\n");
}

TEST_CASE("chunks have letters, and versions are shown if there are several") {
  const auto interleaved = played({"interleaved", 2, 2, 2});
  CHECK_THAT(pipeline_text(interleaved.table, interleaved.timeline),
             Contains("stage 0  F0a F1a F0b F1b"));
  CHECK_THAT(pipeline_legend(interleaved.table), Contains("the chunk"));
  const auto stashing = played({"weight_stashing", 2, 1, 1, 3});
  CHECK_THAT(pipeline_text(stashing.table, stashing.timeline), Contains("F2v1"));
  CHECK_THAT(pipeline_legend(stashing.table), Contains("v1 the version"));
}

TEST_CASE("colours do not change the text") {
  const auto [table, timeline] = played({"interleaved", 3, 6, 2});
  const std::string coloured = pipeline_text(table, timeline, {.colours = true});
  CHECK_THAT(coloured, Contains("\x1b[30;48;5;75m") && Contains("\x1b[0m"));
  std::istringstream with(plain(coloured)), without(pipeline_text(table, timeline));
  for (std::string a, b; std::getline(without, b);) {
    REQUIRE(std::getline(with, a));
    a.erase(a.find_last_not_of(' ') + 1);
    CHECK(a == b);
  }
}

TEST_CASE("every operation appears exactly once, for any sizes and costs") {
  rc::prop("any", [] {
    const Spec spec{*rc::gen::element<std::string>("gpipe", "1f1b", "zb_h1"),
                    *rc::gen::inRange(1, 6), *rc::gen::inRange(1, 9)};
    const auto cost = [] { return *rc::gen::inRange(1, 12); };
    const auto [table, timeline] =
        played(spec, {cost(), cost(), cost(), 0}, *rc::gen::inRange(0, 4));
    std::string picture = pipeline_text(table, timeline, {.columns = 1'000'000});
    const std::string image = pipeline_svg(table, timeline, {.title = "title"});
    RC_ASSERT(count_of(picture, "|") == static_cast<std::size_t>(spec.stages));
    std::replace(picture.begin(), picture.end(), '|', ' ');
    for (const auto& ops : table.ops)
      for (const Op& op : ops)
        if (op.kind != OpKind::update) {
          const auto stages = static_cast<std::size_t>(spec.stages);
          RC_ASSERT(count_of(picture, concat(text_of(op, 1), ' ')) == stages);
          RC_ASSERT(count_of(image, concat('>', text_of(op, 1), '<')) == stages);
        }
  });
}

TEST_CASE("very different costs give a picture of bounded size") {
  const auto [table, timeline] = played({"1f1b", 4, 4}, {1, 1'000'000'000, 0, 0});
  CHECK(pipeline_text(table, timeline).size() < 800'000);
  const std::string image = pipeline_svg(table, timeline, {.title = "wide"});
  CHECK_THAT(image, Contains("<svg ") && Contains("width=\"8088\"") && Contains("</svg>\n"));
  CHECK(count_of(image, "<text") == count_of(image, "</text>"));
}

TEST_CASE("an SVG picture has a title, a legend, stages and a time axis") {
  const auto [table, timeline] = played({"2bw", 3, 3, 1, 2});
  const std::string image = pipeline_svg(table, timeline, {.title = "two versions"});
  for (const char* text : {">two versions<", ">forward<", ">backward<", ">update<", ">stage 2<",
                           ">time<", ">0<", ">F5v0<"})
    CHECK_THAT(image, Contains(text));
}
