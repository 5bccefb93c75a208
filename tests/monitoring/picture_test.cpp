#include "monitoring/picture.hpp"

#include <rapidcheck/catch.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "monitoring/picture_axis.hpp"

namespace leeway {
namespace {

using Catch::Matchers::Contains;
using Points = std::vector<std::pair<double, double>>;

/// The first error in the subset of XML that pictures use; empty for valid XML.
std::string xml_problem(const std::string& text) {
  std::vector<std::string> open;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '&') {
      const std::string name = text.substr(at, text.find(';', at) - at + 1);
      if (name != "&amp;" && name != "&lt;" && name != "&gt;" && name != "&quot;") return name;
    }
    if (static_cast<unsigned char>(text[at]) < 0x20 && text[at] != '\n') return "control character";
    if (text[at] == '>') return "stray >";
    if (text[at] != '<') continue;
    const std::size_t end = text.find('>', at);
    if (end == std::string::npos) return "tag without end";
    const std::string tag = text.substr(at + 1, end - at - 1);
    if (std::count(tag.begin(), tag.end(), '"') % 2 || tag.find('<') != std::string::npos)
      return tag;
    const std::string name =
        tag.substr(tag[0] == '/', tag.find_first_of(" /", 1) - (tag[0] == '/'));
    if (tag[0] == '/') {
      if (open.empty() || open.back() != name) return "closes " + name;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    at = end;
  }
  return open.empty() ? "" : "open " + open.back();
}

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

Chart chart_of(Points points) {
  Chart chart;
  chart.title = "Loss";
  chart.series = {{"ssp", std::move(points), false}};
  return chart;
}

std::string svg_of(const Chart& chart) {
  return svg({&chart, 1});
}

TEST_CASE("ticks are round, inside the range and about as many as requested") {
  CHECK(round_ticks(0, 10, 5) == std::vector<double>{0, 2, 4, 6, 8, 10});
  CHECK(round_ticks(-1, 1, 4) == std::vector<double>{-1, -0.5, 0, 0.5, 1});
  CHECK_THAT(round_ticks(0.13, 0.27, 4), Catch::Approx(std::vector<double>{0.15, 0.2, 0.25}));
  rc::prop("any range", [] {
    const double low =
        *rc::gen::inRange(-1'000'000, 1'000'000) * std::pow(10., *rc::gen::inRange(-9, 9));
    const double span = *rc::gen::inRange(1, 1'000'000) * std::pow(10., *rc::gen::inRange(-6, 9));
    if (span < std::abs(low) * 1e-9) return;
    const auto ticks = round_ticks(low, low + span, 5);
    RC_ASSERT(ticks.size() >= 2u);
    RC_ASSERT(ticks.size() <= 9u);
    RC_ASSERT(ticks.front() >= low - span * 1e-6);
    RC_ASSERT(ticks.back() <= low + span * (1 + 1e-6));
  });
}

TEST_CASE("tick labels are short and distinct") {
  using Labels = std::vector<std::string>;
  CHECK(tick_labels({0, 0.25, 0.5}) == Labels{"0", "0.25", "0.50"});
  CHECK(tick_labels({0, 20'000, 40'000}) == Labels{"0", "20k", "40k"});
  CHECK(tick_labels({0, 5'000, 10'000}) == Labels{"0", "5k", "10k"});
  CHECK(tick_labels({1'500'000, 2'000'000}) == Labels{"1500k", "2000k"});
  CHECK(tick_labels({0, 500, 1000}) == Labels{"0", "500", "1000"});
  CHECK(tick_labels({-0.1, 0, 0.1}) == Labels{"-0.1", "0", "0.1"});
  CHECK(tick_labels({0, 5e-6}) == Labels{"0", "5e-6"});
  CHECK(tick_labels({1e20, 2e20}) == Labels{"1e20", "2e20"});
}

TEST_CASE("an axis maps its extent to pixels and widens to whole ticks") {
  const Axis x({0, 10}, 100, 200, false, false);
  CHECK(x.pixel(0) == 100);
  CHECK(x.pixel(5) == 150);
  const Axis y({0.3, 9.7}, 200, 100, true, false);
  CHECK(y.ticks().front().label == "0");
  CHECK(y.ticks().back().label == "10");
  CHECK(y.pixel(10) == 100);
  const Axis decades({0.002, 800}, 0, 500, true, true);
  CHECK(decades.ticks().size() == 7);
  CHECK(decades.ticks().front().label == "0.001");
  CHECK(decades.pixel(1) == Approx(250));
  CHECK_FALSE(decades.can_show(0));
}

TEST_CASE("thinning keeps ends and extremes, and does not change short lines") {
  Points points;
  for (int i = 0; i < 100'000; ++i) points.emplace_back(i, std::sin(i * 0.01));
  points[54'321].second = 50;
  points[7'777].second = -50;
  const auto thinned = thin(points, 1000);
  CHECK(thinned.size() <= 1000);
  CHECK(thinned.size() > 500);
  CHECK(thinned.front() == points.front());
  CHECK(thinned.back() == points.back());
  CHECK(std::count(thinned.begin(), thinned.end(), points[54'321]) == 1);
  CHECK(std::count(thinned.begin(), thinned.end(), points[7'777]) == 1);
  CHECK(std::is_sorted(thinned.begin(), thinned.end()));
  CHECK(thin(std::span(points).first(1000), 1000).size() == 1000);
}

TEST_CASE("a picture contains its charts, labels and lines") {
  Chart chart = chart_of({{0, 1}, {1, 0.5}, {2, 0.25}});
  chart.x_label = "epoch";
  chart.y_label = "mean loss";
  chart.series.push_back({"bsp", {{0, 1}, {2, 0.5}}, true});
  const std::vector<Chart> charts{chart, chart, chart};
  const std::string picture = svg(charts, {2, 400, 300});
  CHECK(xml_problem(picture) == "");
  CHECK_THAT(picture, Contains("viewBox=\"0 0 800 600\""));
  for (const char* text : {">Loss<", ">epoch<", ">mean loss<", ">ssp<", ">bsp<"})
    CHECK(count_of(picture, text) == 3);
  CHECK(count_of(picture, "stroke-dasharray") == 6);  // the line and its legend
  CHECK(svg(charts, {2, 400, 300}) == picture);
}

TEST_CASE("a series with the colour of an earlier one is dotted") {
  Chart chart = chart_of({{0, 0}, {1, 1}});
  while (chart.series.size() < 7) chart.series.push_back({"one more", {{0, 0}, {1, 1}}});
  CHECK(count_of(svg({&chart, 1}, {1, 400, 300}), "stroke-dasharray") == 0);
  chart.series.push_back({"the eighth", {{0, 0}, {1, 1}}});
  CHECK(count_of(svg({&chart, 1}, {1, 400, 300}), "stroke-dasharray") == 2);
}

TEST_CASE("the legend stays above the plot for any number of series") {
  Chart chart = chart_of({{0, 0}, {1, 1}});
  for (int i = 0; i < 9; ++i)
    chart.series.push_back({"a series with a long name " + std::to_string(i), {{0, 1}}, false});
  const std::string picture = svg_of(chart);
  const auto y_of = [&](const std::string& text) {
    const auto tag = picture.rfind("<text", picture.find(text));
    return std::stod(picture.substr(picture.find("y=\"", tag) + 3));
  };
  const auto clip = picture.find("<clipPath");
  const double plot_top = std::stod(picture.substr(picture.find("y=\"", clip) + 3));
  CHECK(y_of(">ssp<") < y_of("long name 8"));
  CHECK(y_of("long name 8") < plot_top);
}

TEST_CASE("all text is escaped") {
  Chart chart = chart_of({{0, 1}, {1, 2}});
  chart.title = "a < b & \"c\" > d";
  CHECK_THAT(svg_of(chart), Contains("a &lt; b &amp; &quot;c&quot; &gt; d"));
  rc::prop("any bytes", [&](const std::string& bytes) {
    chart.title = chart.x_label = chart.series[0].name = bytes;
    RC_ASSERT(xml_problem(svg_of(chart)) == "");
  });
  chart.title = std::string(5000, '&');
  CHECK(svg_of(chart).size() < 20'000);
}

TEST_CASE("a picture contains only finite numbers") {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  const double most = std::numeric_limits<double>::max();
  std::vector<Chart> charts{chart_of({}),
                            chart_of({{nan, 1}, {1, inf}}),
                            chart_of({{3, 3}}),
                            chart_of({{0, 1}, {1, nan}, {2, 1}}),
                            chart_of({{0, -most}, {1, most}}),
                            chart_of({{0, 1e-310}, {1, 2e-310}}),
                            chart_of({{0, 1e299}, {1, -1e299}}),
                            chart_of({{1, 1}, {1, 1 + 1e-16}})};
  charts[3].y_range = {nan, 2};
  for (std::size_t i = 0, n = charts.size(); i < n; ++i) {
    charts.push_back(charts[i]);
    charts.back().log_y = true;
  }
  rc::prop("special numbers", [&](const std::vector<std::pair<double, double>>& points) {
    auto all = charts;
    all.push_back(chart_of(points));
    for (const Chart& chart : all) {
      const std::string picture = svg_of(chart);
      RC_ASSERT(picture.find("nan") == std::string::npos);
      RC_ASSERT(picture.find("inf") == std::string::npos);
      RC_ASSERT(xml_problem(picture) == "");
    }
  });
  CHECK_THAT(svg_of(charts[0]), Contains("no data"));
  CHECK_THAT(svg_of(charts[1]), Contains("no data"));
}

TEST_CASE("a gap breaks the line, and a single point is a dot") {
  const std::string gap = svg_of(chart_of({{0, 1}, {1, 1}, {2, std::nan("")}, {3, 1}, {4, 1}}));
  const auto path = gap.substr(gap.rfind("<path"));
  CHECK(count_of(path, "M") == 2);
  CHECK(count_of(path, "L") == 2);
  CHECK_THAT(svg_of(chart_of({{3, 3}})), Contains("h0\" stroke=\"#0072b2\" stroke-width=\"6\""));
}

TEST_CASE("pictures of long runs are small") {
  std::vector<Chart> charts(4);
  for (Chart& chart : charts) {
    for (int s = 0; s < 6; ++s) {
      Series series{"series", {}, false};
      for (int i = 0; i < 50'000; ++i) series.points.emplace_back(i, std::sin(i * (s + 1.7)));
      chart.series.push_back(series);
    }
  }
  CHECK(svg(charts).size() < 200'000);
}

}  // namespace
}  // namespace leeway
