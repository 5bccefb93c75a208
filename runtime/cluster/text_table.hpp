#pragma once
// TextTable: a table with columns as wide as their longest cell.
#include <algorithm>
#include <iomanip>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace leeway {

class TextTable {
 public:
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text() const {
    std::vector<std::size_t> widths;
    for (const auto& row : rows_)
      for (std::size_t i = 0; i < row.size(); ++i) {
        if (widths.size() <= i) widths.push_back(0);
        widths[i] = std::max(widths[i], row[i].size());
      }
    std::ostringstream out;
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i + 1 < row.size(); ++i)
        out << std::left << std::setw(static_cast<int>(widths[i]) + 2) << row[i];
      out << row.back() << '\n';
    }
    return out.str();
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace leeway
