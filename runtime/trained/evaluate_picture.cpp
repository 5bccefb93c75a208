// The evaluation of a model as an SVG picture.
#include <algorithm>
#include <cmath>

#include "core/text.hpp"
#include "monitoring/format.hpp"
#include "monitoring/picture.hpp"
#include "runtime/trained/evaluate.hpp"

namespace leeway {
namespace {

constexpr double kMargin = 24, kTop = 64, kPlot = 400, kLabels = 110;
constexpr std::size_t kMostNames = 40;  // more would overlap
constexpr const char* kBlue = "#0072b2";
constexpr const char* kOrange = "#d55e00";

std::string number(double value) {
  return fixed(value, 1);
}

/// Markup of a text of at most 14 characters.
std::string escaped(const std::string& text) {
  constexpr std::size_t kLongest = 14;
  std::string out;
  std::size_t characters = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool continues = (byte & 0xc0) == 0x80;  // UTF-8
    if (!continues && ++characters > kLongest) break;
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += byte < 0x20 || byte == 0x7f ? ' ' : c;
    }
  }
  return out;
}

class Drawing {
 public:
  Drawing(double width, double height, const std::string& title) {
    out_ =
        concat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", number(width), "\" height=\"",
               number(height), "\" viewBox=\"0 0 ", number(width), ' ', number(height),
               "\" font-family=\"sans-serif\" font-size=\"11\" fill=\"#333333\">\n"
               "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n");
    text(kMargin, 26, title, "font-size=\"15\" font-weight=\"600\"");
  }
  void text(double x, double y, const std::string& content, const std::string& attributes = "") {
    out_ += concat("<text x=\"", number(x), "\" y=\"", number(y), "\" ", attributes, ">", content,
                   "</text>\n");
  }
  void box(double x, double y, double width, double height, const std::string& attributes,
           const std::string& hint = "") {
    out_ += concat("<rect x=\"", number(x), "\" y=\"", number(y), "\" width=\"", number(width),
                   "\" height=\"", number(height), "\" ", attributes, ">",
                   hint.empty() ? "" : concat("<title>", hint, "</title>"), "</rect>\n");
  }
  void line(double x1, double y1, double x2, double y2, const std::string& attributes) {
    out_ += concat("<line x1=\"", number(x1), "\" y1=\"", number(y1), "\" x2=\"", number(x2),
                   "\" y2=\"", number(y2), "\" ", attributes, "/>\n");
  }
  void dot(double x, double y) {
    out_ += concat("<circle cx=\"", number(x), "\" cy=\"", number(y), "\" r=\"2\" fill=\"", kBlue,
                   "\" fill-opacity=\"0.5\"/>\n");
  }
  std::string take() { return std::move(out_) + "</svg>\n"; }

 private:
  std::string out_;
};

/// The share of each row: dark cells hold most of their class's samples.
void draw_confusion(Drawing& drawing, const ModelEvaluation& of, double left) {
  const std::size_t count = of.classes.size();
  const double cell = kPlot / static_cast<double>(count);
  const auto rows = of.by_class();
  drawing.text(left, kTop - 12, "Confusion: class of the data (rows), predicted class (columns)");
  drawing.box(left, kTop, kPlot, kPlot, "fill=\"none\" stroke=\"#bbbbbb\"");
  for (const auto& [key, samples] : of.confusion) {
    const auto row = static_cast<std::size_t>(key.first);
    const double share = static_cast<double>(samples) / static_cast<double>(rows[row].samples);
    const double x = left + cell * key.second, y = kTop + cell * key.first;
    const std::string hint =
        concat(escaped(of.classes[row]), " predicted as ",
               escaped(of.classes[static_cast<std::size_t>(key.second)]), ": ", samples);
    drawing.box(x, y, cell, cell,
                concat("fill=\"", key.first == key.second ? kBlue : kOrange, "\" fill-opacity=\"",
                       fixed(std::max(share, 0.02), 3), '"'),
                hint);
    if (cell >= 24)
      drawing.text(x + cell / 2, y + cell / 2 + 4, concat(samples),
                   concat("text-anchor=\"middle\" fill=\"", share > 0.6 ? "#ffffff" : "#333333",
                          "\" font-size=\"10\""));
  }
  if (count > kMostNames) return;
  for (std::size_t i = 0; i < count; ++i) {
    const double middle = cell * (static_cast<double>(i) + 0.5);
    const std::string name = escaped(of.classes[i]);
    drawing.text(left - 6, kTop + middle + 4, name, "text-anchor=\"end\"");
    const double x = left + middle, y = kTop + kPlot + 12;
    drawing.text(
        x, y, name,
        concat("text-anchor=\"end\" transform=\"rotate(-45 ", number(x), ' ', number(y), ")\""));
  }
}

/// A bar for the accuracy of each bin of confidence; on the diagonal, the two agree.
void draw_calibration(Drawing& drawing, const ModelEvaluation& of, double left) {
  const double bottom = kTop + kPlot, width = kPlot / ModelEvaluation::kBins;
  drawing.text(left, kTop - 12,
               concat("Calibration: accuracy by confidence, expected error ",
                      percent(of.calibration_error())));
  for (std::size_t i = 0; i < ModelEvaluation::kBins; ++i) {
    const auto& bin = of.bins[i];
    if (bin.count == 0) continue;
    const auto count = static_cast<double>(bin.count);
    const double accuracy = static_cast<double>(bin.correct) / count;
    const double x = left + width * static_cast<double>(i);
    drawing.box(x + 1, bottom - kPlot * accuracy, width - 2, kPlot * accuracy,
                concat("fill=\"", kBlue, "\" fill-opacity=\"0.75\""),
                concat(bin.count, " predictions, mean confidence ", percent(bin.confidence / count),
                       ", accuracy ", percent(accuracy)));
    const double y = bottom - kPlot * bin.confidence / count;
    drawing.line(x, y, x + width, y, concat("stroke=\"", kOrange, "\" stroke-width=\"2\""));
  }
  drawing.line(left, bottom, left + kPlot, kTop, "stroke=\"#888888\" stroke-dasharray=\"4 3\"");
  drawing.box(left, kTop, kPlot, kPlot, "fill=\"none\" stroke=\"#bbbbbb\"");
  for (int tenths = 0; tenths <= 10; tenths += 2) {
    const double at = kPlot * tenths / 10;
    drawing.text(left + at, bottom + 16, concat(10 * tenths, "%"), "text-anchor=\"middle\"");
    drawing.text(left - 6, bottom - at + 4, concat(10 * tenths, "%"), "text-anchor=\"end\"");
  }
  drawing.text(left + kPlot / 2, bottom + 36, "confidence (line: its mean in the bin)",
               "text-anchor=\"middle\"");
}

std::string draw_regression(const ModelEvaluation& of) {
  double low = 0, high = 1;
  if (!of.examples.empty()) {
    low = high = of.examples[0].first;
    for (const auto& [target, value] : of.examples)
      if (std::isfinite(value)) {
        low = std::min({low, target, value});
        high = std::max({high, target, value});
      }
    if (low == high) high = low + 1;
  }
  const double left = kMargin + kLabels, bottom = kTop + kPlot;
  Drawing drawing(left + kPlot + kMargin, bottom + 64,
                  escaped(of.name) + ": predictions over targets");
  const auto at = [&](double value) { return kPlot * (value - low) / (high - low); };
  for (const auto& [target, value] : of.examples)
    if (std::isfinite(value)) drawing.dot(left + at(target), bottom - at(value));
  drawing.line(left, bottom, left + kPlot, kTop, "stroke=\"#888888\" stroke-dasharray=\"4 3\"");
  drawing.box(left, kTop, kPlot, kPlot, "fill=\"none\" stroke=\"#bbbbbb\"");
  for (const double tick : round_ticks(low, high, 6)) {
    if (tick < low || tick > high) continue;
    drawing.text(left + at(tick), bottom + 16, concat(tick), "text-anchor=\"middle\"");
    drawing.text(left - 6, bottom - at(tick) + 4, concat(tick), "text-anchor=\"end\"");
  }
  drawing.text(left + kPlot / 2, bottom + 40, "target", "text-anchor=\"middle\"");
  return drawing.take();
}

}  // namespace

std::string picture_of(const ModelEvaluation& of) {
  if (!of.has_classes()) return draw_regression(of);
  const double first = kMargin + kLabels, second = first + kPlot + kLabels;
  Drawing drawing(second + kPlot + kMargin + 20, kTop + kPlot + kLabels,
                  concat(escaped(of.name), ": accuracy ", percent(of.accuracy), " of ",
                         grouped(static_cast<std::uint64_t>(of.predictions)), " predictions"));
  draw_confusion(drawing, of, first);
  draw_calibration(drawing, of, second);
  return drawing.take();
}

}  // namespace leeway
