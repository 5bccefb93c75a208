#pragma once
// sums_by: groups rows with seconds.
#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace leeway::blame {

/// The sums of `seconds` of rows with the same value of `member`, largest first.
template <class Row, class Key>
std::vector<std::pair<Key, double>> sums_by(const std::vector<Row>& rows, Key Row::*member) {
  std::map<Key, double> sums;
  for (const Row& row : rows) sums[row.*member] += row.seconds;
  std::vector<std::pair<Key, double>> all(sums.begin(), sums.end());
  std::ranges::stable_sort(all, std::greater<>(), [](const auto& one) { return one.second; });
  return all;
}

}  // namespace leeway::blame
