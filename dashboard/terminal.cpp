#include "dashboard/terminal.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/text.hpp"
#include "monitoring/format.hpp"

namespace leeway::dashboard {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kNameWidth = 16, kBarWidth = 30, kMostCauses = 4;

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
}

/// UTF-8 text without control characters, filled to `width` characters, or cut and ended by "…".
std::string cell(const std::string& text, std::size_t width) {
  const auto all = static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
  std::string out;
  std::size_t count = 0;
  for (const char one : text) {
    if (begins_character(one) && all > width && count + 1 == width) return out + "…";
    count += begins_character(one);
    out += static_cast<unsigned char>(one) < 0x20 || one == 0x7f ? '?' : one;
  }
  return out + std::string(width - count, ' ');
}

/// Eight heights of a block; a dot for a missing value.
std::string spark(double share) {
  static const char* const kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (share < 0) return "·";
  const auto height = static_cast<int>(std::floor(share * 8));
  return kBlocks[std::clamp(height, 0, 7)];
}

std::string bar(double share, std::size_t width) {
  const auto full = static_cast<std::size_t>(
      std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(width)));
  std::string out;
  for (std::size_t i = 0; i < full; ++i) out += "█";
  return out + std::string(width - full, ' ');
}

class Screen {
 public:
  explicit Screen(TerminalSize size) : size_(size) {}
  void line(const std::string& text) {
    if (lines_.size() < size_.lines) lines_.push_back(cell(text, size_.columns));
  }
  std::size_t left() const { return size_.lines - lines_.size(); }
  std::string text() const { return join(lines_, "\n") + "\n"; }

 private:
  TerminalSize size_;
  std::vector<std::string> lines_;
};

void add_header(Screen& screen, const Json& state) {
  const Json& run = state.at("run");
  const Json& totals = state.at("totals");
  const Json& ended = state.at("ended");
  screen.line(
      concat(run.at("name").get<std::string>(), ", ", run.at("kind").get<std::string>(), ", ",
             run.at("policy").get<std::string>(), ", ", counted(run.at("workers"), "worker"), ", ",
             counted(run.at("shards"), "shard"), "; ", duration(state.at("now")), ", ",
             ended.is_null() ? "live" : concat("ended: ", ended.at("reason").get<std::string>())));
  screen.line(
      concat("epoch ", totals.at("epoch").get<std::int64_t>(), ", ", grouped(totals.at("samples")),
             " samples, ",
             grouped(static_cast<std::uint64_t>(totals.at("samples_per_second").get<double>())),
             " samples/s, ", totals.at("live_workers").get<int>(), " live, ",
             grouped(totals.at("parked_pulls")), " parked pulls"));
  screen.line(state.at("sentences").at("loss").get<std::string>());
  const auto lost = totals.at("lost_events").get<std::uint64_t>();
  screen.line(lost == 0 ? ""
                        : concat(counted(lost, "event"),
                                 " came faster than they could be counted; the figures below lack "
                                 "them"));
}

void add_causes(Screen& screen, const Json& state) {
  screen.line(state.at("sentences").at("lost").get<std::string>());
  const Json& names = state.at("cause_names");
  const Json& causes = state.at("causes");
  for (std::size_t i = 0; i < std::min(causes.size(), kMostCauses); ++i) {
    const double share = causes[i].at("share");
    screen.line(concat("  ", cell(names.at(causes[i].at("cause").get<std::size_t>()), kNameWidth),
                       ' ', bar(share, kBarWidth), ' ', percent(share)));
  }
  screen.line("");
}

/// The share of its time that each row has waited: in the whole run if it has ended, else in the
/// latest intervals, of which it also shows the leads.
void add_workers(Screen& screen, const Json& state, std::size_t columns) {
  const Json& rows = state.at("run").at("rows");
  const Json& list = state.at("intervals").at("list");
  if (!state.at("run").at("has_events").get<bool>())
    return screen.line("The run was not traced: run with --trace to see its workers.");
  const bool has_ended = !state.at("ended").is_null();
  const std::size_t width = columns - std::min(columns, kNameWidth + 20);
  const std::size_t shown = std::min<std::size_t>(list.size(), width);
  const std::size_t counted_from = has_ended ? 0 : list.size() - shown;
  int largest = state.at("bound").is_number() ? state.at("bound").get<int>() : 0;
  std::vector<double> waited(rows.size(), 0);
  for (std::size_t i = 0; i < list.size(); ++i) {
    for (const int lead : list[i].at("lead")) largest = std::max(largest, lead);
    for (const Json& wait : list[i].at("waits"))
      if (i >= counted_from) waited.at(wait.at(0).get<std::size_t>()) += wait.at(2).get<double>();
  }
  const double per_interval = state.at("width");
  const double span =
      std::max(per_interval * static_cast<double>(list.size() - counted_from), 1e-9);
  screen.line(concat(cell("lead, 0 to " + concat(largest), kNameWidth), "   waited   ",
                     has_ended ? "in the whole run; leads of the last " : "in the last ",
                     duration(per_interval * static_cast<double>(shown))));
  for (std::size_t row = 0; row < rows.size() && screen.left() > 1; ++row) {
    const double time = span * rows[row].at("workers").get<double>();
    std::string line = concat("  ", cell(rows[row].at("name"), kNameWidth), ' ',
                              cell(percent(std::min(waited[row] / time, 1.0)), 8), ' ');
    for (std::size_t i = list.size() - shown; i < list.size(); ++i) {
      const int lead = list[i].at("lead").at(row);
      line += spark(lead < 0 ? -1 : static_cast<double>(lead) / std::max(largest, 1));
    }
    screen.line(line);
  }
}

}  // namespace

std::string screen_of(const Json& state, TerminalSize size) {
  Screen screen(size);
  add_header(screen, state);
  add_causes(screen, state);
  add_workers(screen, state, size.columns);
  if (screen.left() > 0) screen.line(state.at("sentences").at("blocked").get<std::string>());
  return screen.text();
}

}  // namespace leeway::dashboard
