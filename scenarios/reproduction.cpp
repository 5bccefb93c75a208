#include "reproduction.hpp"

#include <leeway/core/text.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <utility>

namespace leeway::study {
namespace {

/// Begins the name of a figure that is a loss; the virtual seconds follow.
constexpr std::string_view kLossAt = "loss at ";
/// Of the text of a verdict, which documents indent.
constexpr std::size_t kLineColumns = 96;

}  // namespace

bool take_full(int& argc, char** argv) {
  char** const end = argv + argc;
  char** const kept = std::remove_if(
      argv, end, [](const char* word) { return std::string_view(word) == "--full"; });
  const bool found = kept != end;
  argc = static_cast<int>(kept - argv);
  return found;
}

std::string comparison_table(std::span<const Comparison> rows) {
  std::size_t figure = 0, published = 10, here = 6, deviation = 10;
  for (const Comparison& row : rows) {
    figure = std::max(figure, row.figure.size() + 1);
    published = std::max(published, row.published.size() + 2);
    here = std::max(here, row.here.size() + 2);
    deviation = std::max(deviation, row.deviation.size() + 2);
  }
  const auto line = [&](const Comparison& row) {
    const std::string text = concat('\n', cell(figure, row.figure), cell(published, row.published),
                                    cell(here, row.here), cell(deviation, row.deviation));
    return text.substr(0, text.find_last_not_of(' ') + 1);
  };
  std::string text = line({"", "published", "here", "deviation"});
  for (const Comparison& row : rows) text += line(row);
  return text + '\n';
}

std::string verdict_line(Outcome outcome, const std::string& reason) {
  std::istringstream words(concat("Verdict: ",
                                  outcome == Outcome::reproduced       ? "reproduced"
                                  : outcome == Outcome::not_reproduced ? "not reproduced"
                                                                       : "a null result",
                                  "; ", reason, "."));
  std::string text, line;
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > kLineColumns)
      text += '\n' + std::exchange(line, "");
    line += (line.empty() ? "" : " ") + word;
  }
  return text + '\n' + line + '\n';
}

void keep_losses(Campaign::Figures& figures, const Result& result) {
  for (const auto& evaluation : result.totals.evaluations)
    figures[concat(kLossAt, (evaluation.now - Instant{}).seconds())] = evaluation.loss;
}

Series losses_of(const std::string& name, const Campaign::Figures& figures) {
  Series series{.name = name};
  for (const auto& [figure, loss] : figures)
    if (figure.starts_with(kLossAt) && std::isfinite(loss))
      series.points.emplace_back(std::strtod(figure.c_str() + kLossAt.size(), nullptr), loss);
  std::ranges::sort(series.points);
  return series;
}

void Band::add(double x, const std::vector<double>& values) {
  medians_.emplace_back(x, middle(values));
  ranges_.emplace_back(x, values.front());
  ranges_.emplace_back(x, values.back());
  ranges_.emplace_back(x, kNever);  // a gap
}

void Band::append_to(Chart& chart) const {
  chart.series.push_back({name_, medians_});
  chart.series.push_back({concat(name_, ", seeds"), ranges_, true});
}

}  // namespace leeway::study
