#include "monitoring/pipeline_picture.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "core/check.hpp"
#include "core/text.hpp"
#include "monitoring/picture.hpp"

namespace leeway {

namespace {

using pipeline::Op;
using pipeline::OpKind;
using pipeline::Slot;
using pipeline::Table;
using pipeline::Timeline;

constexpr int kNone = -1;
constexpr std::size_t kShades = 4;  // chunk i has shade i % kShades

/// Background colours of a terminal, by operation and chunk.
constexpr int kTerminal[][kShades] = {{75, 111, 69, 153},
                                      {114, 150, 71, 193},
                                      {179, 222, 136, 229},
                                      {114, 150, 71, 193},
                                      {252, 250, 248, 254}};
/// Okabe and Ito's colour-blind safe palette (2008), lighter from chunk to chunk.
constexpr const char* kSvg[][kShades] = {{"#56b4e9", "#8accf0", "#b5dff6", "#d6eefa"},
                                         {"#5ec29e", "#8fd5bc", "#b6e4d5", "#d5f0e7"},
                                         {"#e69f00", "#efbd4d", "#f5d58f", "#f9e6bf"},
                                         {"#5ec29e", "#8fd5bc", "#b6e4d5", "#d5f0e7"},
                                         {"#bbbbbb", "#cccccc", "#d8d8d8", "#e4e4e4"}};

std::size_t row_of(OpKind kind) {
  return static_cast<std::size_t>(kind);
}
std::size_t shade_of(const Op& op) {
  return static_cast<std::size_t>(op.chunk) % kShades;
}

/// A table and its timeline, scaled to a width.
struct Drawing {
  Drawing(const Table& of, const Timeline& when) : table(of), timeline(when) {
    LW_CHECK(count_ops(table) <= kMaxPictureOps, count_ops(table));
    LW_CHECK(timeline.slots.size() == table.ops.size(), timeline.slots.size());
    versions = std::any_of(table.version_lag.begin(), table.version_lag.end(),
                           [](int lag) { return lag > 0; });
    each([&](int, const Op& op, const Slot& slot) {
      if (slot.end == slot.begin) return;
      longest_label = std::max(longest_label, label(op).size());
      const std::int64_t time = slot.end - slot.begin;
      shortest = shortest == 0 ? time : std::min(shortest, time);
    });
    shortest = std::max<std::int64_t>(shortest, 1);
  }

  template <class Visit>
  void each(Visit visit) const {
    for (std::size_t stage = 0; stage < table.ops.size(); ++stage) {
      LW_CHECK(timeline.slots[stage].size() == table.ops[stage].size(), stage);
      for (std::size_t i = 0; i < table.ops[stage].size(); ++i)
        visit(static_cast<int>(stage), table.ops[stage][i], timeline.slots[stage][i]);
    }
  }

  std::string label(const Op& op) const {
    std::string text = pipeline::text_of(op, table.chunks);
    if (versions && op.kind != OpKind::update) text += concat('v', op.version);
    return text;
  }

  /// The width at which the shortest operation is `cell` wide, but at most `most`.
  std::int64_t width(std::int64_t cell, std::int64_t most) const {
    using Wide = __int128;
    return static_cast<std::int64_t>(
        std::min<Wide>((Wide{timeline.length} * cell + shortest - 1) / shortest, most));
  }
  /// The position of a time in a drawing of `width`.
  std::int64_t at(std::int64_t time, std::int64_t width) const {
    using Wide = __int128;
    return static_cast<std::int64_t>(Wide{time} * width /
                                     std::max<std::int64_t>(timeline.length, 1));
  }

  const Table& table;
  const Timeline& timeline;
  bool versions = false;
  std::size_t longest_label = 1;
  std::int64_t shortest = 0;
};

struct Cell {
  char letter = '.';
  int colour = kNone;
};
using Row = std::vector<Cell>;

std::vector<Row> rows_of(const Drawing& drawing, std::int64_t width) {
  std::vector<Row> rows(drawing.table.ops.size(), Row(static_cast<std::size_t>(width)));
  drawing.each([&](int stage, const Op& op, const Slot& slot) {
    Row& row = rows[static_cast<std::size_t>(stage)];
    const auto begin = static_cast<std::size_t>(drawing.at(slot.begin, width));
    const auto end = static_cast<std::size_t>(drawing.at(slot.end, width));
    if (slot.end == slot.begin) {
      if (op.kind == OpKind::update && end > 0) row[end - 1].letter = '|';
      return;
    }
    const std::string label = drawing.label(op);
    for (std::size_t i = begin; i < end; ++i) {
      const bool last = i + 1 == end && end - begin > 1;  // leaves a gap
      row[i] = {i - begin < label.size() && !last ? label[i - begin] : ' ',
                kTerminal[row_of(op.kind)][shade_of(op)]};
    }
  });
  return rows;
}

std::string printed(const Row& row, std::size_t begin, std::size_t end, bool colours) {
  std::string out;
  int colour = kNone;
  for (std::size_t i = begin; i < end; ++i) {
    if (colours && row[i].colour != colour)
      out += row[i].colour == kNone ? std::string("\x1b[0m")
                                    : concat("\x1b[30;48;5;", row[i].colour, 'm');
    colour = row[i].colour;
    out += row[i].letter;
  }
  if (colours && colour != kNone) out += "\x1b[0m";
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out + '\n';
}

/// The kinds of operations in the table.
std::set<OpKind> kinds_of(const Table& table) {
  std::set<OpKind> kinds;
  for (const auto& ops : table.ops)
    for (const Op& op : ops) kinds.insert(op.kind);
  return kinds;
}

/// A coordinate with a precision of a tenth of a pixel.
std::string pixel(std::int64_t tenths) {
  return tenths % 10 == 0 ? concat(tenths / 10) : concat(tenths / 10, '.', tenths % 10);
}

}  // namespace

std::size_t count_ops(const Table& table) {
  std::size_t count = 0;
  for (const auto& ops : table.ops) count += ops.size();
  return count;
}

std::string pipeline_legend(const Table& table) {
  std::vector<std::string> parts;
  for (const OpKind kind : kinds_of(table))
    parts.push_back(concat(pipeline::letter_of(kind), ' ', pipeline::name_of(kind)));
  for (auto& part : parts)
    if (part == "U update") part = "| or U update";
  if (table.chunks > 1) parts.push_back("a, b, ... the chunk");
  if (std::any_of(table.version_lag.begin(), table.version_lag.end(),
                  [](int lag) { return lag > 0; }))
    parts.push_back("v1 the version of the weights");
  parts.push_back(". idle");
  return join(parts, ", ");
}

std::string pipeline_text(const Table& table, const Timeline& timeline,
                          const PipelinePicture& options) {
  constexpr std::int64_t kMostColumns = 100'000;
  const Drawing drawing(table, timeline);
  const auto cell = static_cast<std::int64_t>(drawing.longest_label) + 1;
  const std::int64_t width = drawing.width(cell, kMostColumns);
  const auto rows = rows_of(drawing, width);
  const std::size_t digits = concat(table.stages - 1).size();
  const std::size_t margin = 8 + digits;
  // Whole cells per line, so that few operations are split between lines.
  const auto room = std::max<std::int64_t>(
      cell, (options.columns - static_cast<std::int64_t>(margin)) / cell * cell);
  std::string out;
  for (std::int64_t begin = 0; begin < width; begin += room) {
    const std::int64_t end = std::min(begin + room, width);
    if (width > room) {
      const auto wide = static_cast<__int128>(begin) * timeline.length / width;
      out += concat(begin > 0 ? "\n" : "", "time ", static_cast<std::int64_t>(wide), '\n');
    }
    for (std::size_t stage = 0; stage < rows.size(); ++stage) {
      std::string number = concat(stage);
      number.insert(0, digits - number.size(), ' ');
      out += concat("stage ", number, "  ",
                    printed(rows[stage], static_cast<std::size_t>(begin),
                            static_cast<std::size_t>(end), options.colours));
    }
  }
  return out;
}

std::string pipeline_svg(const Table& table, const Timeline& timeline,
                         const PipelinePicture& options) {
  constexpr std::int64_t kMaxTenths = 80'000, kLetter = 70, kRow = 26, kLeft = 64, kTop = 62;
  const Drawing drawing(table, timeline);
  const auto cell = static_cast<std::int64_t>(drawing.longest_label) * kLetter + 60;
  const std::int64_t inner = drawing.width(cell, kMaxTenths);  // tenths of pixels
  const std::int64_t width = std::max<std::int64_t>(inner / 10 + kLeft + 24, 420);
  const std::int64_t bottom = kTop + kRow * table.stages, height = bottom + 48;
  std::string out = concat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", width,
                           "\" height=\"", height, "\" viewBox=\"0 0 ", width, ' ', height,
                           "\" font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" "
                           "font-size=\"12\">\n<rect width=\"",
                           width, "\" height=\"", height,
                           "\" fill=\"#ffffff\"/>\n<text x=\"12\" "
                           "y=\"24\" font-size=\"15\" font-weight=\"600\" fill=\"#222222\">",
                           options.title, "</text>\n");
  std::int64_t x = 12;
  for (const OpKind kind : kinds_of(table)) {
    const auto name = pipeline::name_of(kind);
    out += concat("<rect x=\"", x, "\" y=\"36\" width=\"14\" height=\"14\" fill=\"",
                  kSvg[row_of(kind)][0], "\"/>\n<text x=\"", x + 19,
                  "\" y=\"48\" fill=\"#222222\">", name, "</text>\n");
    x += 36 + 7 * static_cast<std::int64_t>(name.size());
  }
  for (int stage = 0; stage < table.stages; ++stage)
    out += concat("<text x=\"12\" y=\"", kTop + kRow * stage + 18, "\" fill=\"#666666\">stage ",
                  stage, "</text>\n<rect x=\"", kLeft, "\" y=\"", kTop + kRow * stage + 2,
                  "\" width=\"", pixel(inner), "\" height=\"", kRow - 4, "\" fill=\"#f2f2f2\"/>\n");
  drawing.each([&](int stage, const Op& op, const Slot& slot) {
    const std::int64_t begin = drawing.at(slot.begin, inner), end = drawing.at(slot.end, inner);
    const std::int64_t top = kTop + kRow * stage;
    if (slot.begin == slot.end) {
      if (op.kind == OpKind::update)
        out += concat("<path d=\"M", pixel(10 * kLeft + end), ',', top, "v", kRow,
                      "\" stroke=\"#222222\" stroke-width=\"2\"/>\n");
      return;
    }
    out += concat("<rect x=\"", pixel(10 * kLeft + begin), "\" y=\"", top + 2, "\" width=\"",
                  pixel(end - begin), "\" height=\"", kRow - 4, "\" fill=\"",
                  kSvg[row_of(op.kind)][shade_of(op)], "\" stroke=\"#ffffff\"/>\n");
    const std::string label = drawing.label(op);
    if (static_cast<std::int64_t>(label.size()) * kLetter > end - begin) return;
    out +=
        concat("<text x=\"", pixel(10 * kLeft + (begin + end) / 2), "\" y=\"", top + 17,
               "\" text-anchor=\"middle\" font-size=\"11\" fill=\"#222222\">", label, "</text>\n");
  });
  for (const double tick :
       round_ticks(0, std::max(static_cast<double>(timeline.length), 1.0),
                   static_cast<int>(std::clamp<std::int64_t>(inner / 800, 2, 30)))) {
    const auto time = static_cast<std::int64_t>(tick);
    if (static_cast<double>(time) != tick) continue;
    const std::string place = pixel(10 * kLeft + drawing.at(time, inner));
    out += concat("<path d=\"M", place, ',', bottom + 2, "v5\" stroke=\"#666666\"/>\n<text x=\"",
                  place, "\" y=\"", bottom + 20, "\" text-anchor=\"middle\" fill=\"#666666\">",
                  time, "</text>\n");
  }
  return out + concat("<text x=\"", kLeft, "\" y=\"", bottom + 38,
                      "\" fill=\"#666666\">time</text>\n</svg>\n");
}

}  // namespace leeway
