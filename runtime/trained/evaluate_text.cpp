// The evaluation of a model as text.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "core/text.hpp"
#include "monitoring/format.hpp"
#include "runtime/trained/evaluate.hpp"

namespace leeway {
namespace {

/// Classes of a matrix that fits a terminal, and rows of the tables of more classes.
constexpr std::size_t kMatrixClasses = 16;
constexpr std::size_t kRows = 50;

/// The first characters of a class's name, for a column; control characters become spaces.
std::string cell_name(const std::string& name, std::size_t width) {
  std::string out;
  std::size_t characters = 0;
  for (const char c : name) {
    const bool continues = (static_cast<unsigned char>(c) & 0xc0) == 0x80;  // UTF-8
    if (!continues && ++characters > width) break;
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  }
  const std::size_t shown = std::min(characters, width);
  return std::string(width - shown, ' ') + out;
}

std::size_t name_width(const std::vector<std::string>& names) {
  std::size_t width = 5;
  for (const auto& name : names) width = std::max(width, name.size());
  return std::min<std::size_t>(width, 20);
}

void print_classes(std::ostream& out, const ModelEvaluation& of) {
  const auto rows = of.by_class();
  const std::size_t width = name_width(of.classes), shown = std::min(rows.size(), kRows);
  const auto print = [&](const ModelEvaluation::OfClass& row) {
    out << std::setw(11) << percent(row.precision) << std::setw(9) << percent(row.recall)
        << std::setw(9) << percent(row.f1) << std::setw(10) << grouped(row.samples) << '\n';
  };
  out << "\n  " << cell_name("class", width) << "  precision   recall       F1   samples\n";
  for (std::size_t i = 0; i < shown; ++i) {
    out << "  " << cell_name(of.classes[i], width);
    print(rows[i]);
  }
  if (shown < rows.size()) out << "  ... and " << rows.size() - shown << " more classes\n";
  ModelEvaluation::OfClass mean;
  for (const auto& row : rows) {
    const auto count = static_cast<double>(rows.size());
    mean.precision += row.precision / count;
    mean.recall += row.recall / count;
    mean.f1 += row.f1 / count;
    mean.samples += row.samples;
  }
  out << "  " << cell_name("mean", width);
  print(mean);
}

void print_matrix(std::ostream& out, const ModelEvaluation& of) {
  const std::size_t width = name_width(of.classes);
  std::uint64_t largest = 0;
  for (const auto& [key, count] : of.confusion) largest = std::max(largest, count);
  const std::size_t cell = std::max<std::size_t>(grouped(largest).size(), 6);
  out << "\nConfusion: a row for each class of the data, a column for each predicted class\n  "
      << std::string(width, ' ');
  for (const auto& name : of.classes) out << ' ' << cell_name(name, cell);
  out << '\n';
  const int count = static_cast<int>(of.classes.size());
  for (int row = 0; row < count; ++row) {
    out << "  " << cell_name(of.classes[static_cast<std::size_t>(row)], width);
    for (int column = 0; column < count; ++column) {
      const auto found = of.confusion.find({row, column});
      out << ' ' << std::setw(static_cast<int>(cell))
          << (found == of.confusion.end() ? "." : grouped(found->second));
    }
    out << '\n';
  }
}

void print_confusions(std::ostream& out, const ModelEvaluation& of) {
  std::vector<std::pair<std::uint64_t, std::pair<int, int>>> wrong;
  for (const auto& [key, count] : of.confusion)
    if (key.first != key.second) wrong.emplace_back(count, key);
  std::stable_sort(wrong.begin(), wrong.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  constexpr std::size_t kShown = 10;
  wrong.resize(std::min(wrong.size(), kShown));
  if (wrong.empty()) return;
  out << "\nMost frequent confusions\n";
  for (const auto& [count, key] : wrong)
    out << std::setw(12) << grouped(count) << "  "
        << trimmed(cell_name(of.classes[static_cast<std::size_t>(key.first)], 20))
        << " predicted as "
        << trimmed(cell_name(of.classes[static_cast<std::size_t>(key.second)], 20)) << '\n';
}

void print_reliability(std::ostream& out, const ModelEvaluation& of) {
  out << "\nCalibration: the expected calibration error is " << percent(of.calibration_error())
      << " (" << ModelEvaluation::kBins << " bins)\n"
      << "  confidence      samples   mean confidence   accuracy\n";
  for (std::size_t i = 0; i < of.bins.size(); ++i) {
    const auto& bin = of.bins[i];
    if (bin.count == 0) continue;
    const auto border = [](std::size_t at) {
      return fixed(static_cast<double>(at) / ModelEvaluation::kBins, 2);
    };
    const auto count = static_cast<double>(bin.count);
    out << "  " << border(i) << " - " << border(i + 1) << std::setw(12) << grouped(bin.count)
        << std::setw(18) << percent(bin.confidence / count) << std::setw(11)
        << percent(static_cast<double>(bin.correct) / count) << '\n';
  }
}

}  // namespace

std::string text_of(const ModelEvaluation& of) {
  std::ostringstream out;
  out << of.name << " on " << of.data << ": " << grouped(static_cast<std::uint64_t>(of.samples))
      << (of.samples == 1 ? " sample" : " samples") << "\n\n  loss      " << fixed(of.loss, 4)
      << '\n';
  if (!of.has_classes()) {
    out << "  mean absolute error     " << of.mean_absolute_error << '\n'
        << "  root mean square error  " << of.root_mean_square_error << '\n'
        << "  R squared               "
        << (std::isfinite(of.explained_variance) ? fixed(of.explained_variance, 4)
                                                 : "unknown, as all targets are equal")
        << '\n';
    return out.str();
  }
  out << "  accuracy  " << percent(of.accuracy) << '\n';
  print_classes(out, of);
  if (of.classes.size() <= kMatrixClasses)
    print_matrix(out, of);
  else
    print_confusions(out, of);
  print_reliability(out, of);
  return out.str();
}

}  // namespace leeway
