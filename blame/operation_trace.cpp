#include "blame/operation_trace.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "core/limits.hpp"
#include "core/number.hpp"
#include "core/text.hpp"
#include "models/datasets/csv_reader.hpp"
#include "models/datasets/file.hpp"

namespace leeway::blame {
namespace {

enum Column : std::size_t { kReplica, kStage, kStep, kKind, kStart, kDuration, kNumber, kColumns };
constexpr std::array<std::string_view, kColumns> kNames = {
    "dp_rank", "stage", "step", "optype", "start_ts", "duration", "seq_id"};

/// Bound of replicas and stages, and of the operations of one kind in a step.
constexpr int kMostNumber = limits::kMaxWorkers;

class Reader {
 public:
  Reader(const std::string& path, std::string_view content) : path_(path), csv_(content, path_) {}

  Expected<OperationTrace> read() {
    if (auto header = read_header(); !header) return header.error();
    for (auto row = next_row();; row = next_row()) {
      if (!row) return row.error();
      if (!*row) break;
      if (cells_.size() == 1 && cells_[0].empty()) continue;
      if (auto operation = read_operation(); !operation) return operation.error();
    }
    if (trace_.operations.empty()) return error("the file has no operation below its header");
    if (auto all = check_ranks(); !all) return all.error();
    return std::move(trace_);
  }

 private:
  /// Reads the next row into cells_. False at the end, or at an error.
  Expected<bool> next_row() {
    cells_.clear();
    if (csv_.at_end()) return false;
    line_ = csv_.place().number;
    do {
      if (const Status read = csv_.read_text(cells_.emplace_back()); !read) return read.error();
    } while (csv_.advance() == CsvReader::Next::field);
    return true;
  }

  Status read_header() {
    const auto row = next_row();
    if (!row) return row.error();
    if (!*row) return error("the file is empty");
    for (std::size_t column = 0; column < kColumns; ++column) {
      const auto found = std::ranges::find(cells_, kNames[column]);
      if (found == cells_.end())
        return error(concat("no column \"", kNames[column],
                            "\"; needed are dp_rank, stage, step, optype, start_ts, duration and "
                            "seq_id"));
      places_[column] = static_cast<std::size_t>(found - cells_.begin());
    }
    columns_ = cells_.size();
    return {};
  }

  Status read_operation() {
    if (cells_.size() != columns_)
      return error(concat("found ", cells_.size(), " columns, the header has ", columns_));
    Operation operation;
    for (const auto& [column, to] :
         {std::pair(kReplica, &operation.rank.replica), std::pair(kStage, &operation.rank.stage),
          std::pair(kNumber, &operation.number)})
      if (!parse(cells_[places_[column]], *to) || *to < 0 || *to >= kMostNumber)
        return bad_cell(column, concat("a whole number from 0 to ", kMostNumber - 1));
    if (!parse(cells_[places_[kStep]], operation.step)) return bad_cell(kStep, "a whole number");
    if (!parse(cells_[places_[kStart]], operation.start) || !std::isfinite(operation.start))
      return bad_cell(kStart, "seconds");
    if (!parse(cells_[places_[kDuration]], operation.duration) ||
        !(operation.duration >= 0 && std::isfinite(operation.duration)))
      return bad_cell(kDuration, "seconds from 0");
    const std::string& name = cells_[places_[kKind]];
    if (name.empty()) return bad_cell(kKind, "a name");
    const auto [kind, is_new] = kinds_.try_emplace(name, trace_.kinds.size());
    if (is_new) trace_.kinds.push_back(name);
    operation.kind = kind->second;
    trace_.replicas = std::max(trace_.replicas, operation.rank.replica + 1);
    trace_.stages = std::max(trace_.stages, operation.rank.stage + 1);
    trace_.operations.push_back(operation);
    return {};
  }

  /// Whether replicas and stages count from 0 without a gap.
  Status check_ranks() const {
    std::set<int> replicas, stages;
    for (const Operation& operation : trace_.operations) {
      replicas.insert(operation.rank.replica);
      stages.insert(operation.rank.stage);
    }
    for (const auto& [column, found] : {std::pair(kReplica, &replicas), std::pair(kStage, &stages)})
      for (int expected = 0; const int number : *found)
        if (number != expected++)
          return Error{concat('"', path_, "\": column ", kNames[column], " has ", number,
                              ", but no ", expected - 1, "; number them from 0")};
    return {};
  }

  template <class Number>
  static bool parse(std::string_view text, Number& to) {
    const auto number = parse_number<Number>(text);
    to = number.value_or(to);
    return number.has_value();
  }

  Error bad_cell(Column column, std::string_view wanted) const {
    return error(concat("column ", kNames[column], ": expected ", wanted, ", found ",
                        excerpt(cells_[places_[column]])));
  }
  Error error(const std::string& what) const {
    return Error{concat('"', path_, "\", line ", line_, ": ", what)};
  }

  std::string path_;
  CsvReader csv_;
  std::int64_t line_ = 1;
  std::vector<std::string> cells_;  // of the row
  std::size_t columns_ = 0;
  std::array<std::size_t, kColumns> places_{};
  std::map<std::string, std::size_t> kinds_;
  OperationTrace trace_;
};

}  // namespace

std::map<std::int64_t, std::vector<Operation>> operations_by_step(const OperationTrace& trace) {
  std::map<std::int64_t, std::vector<Operation>> steps;
  for (const Operation& operation : trace.operations) steps[operation.step].push_back(operation);
  return steps;
}

Expected<OperationTrace> read_operations(const std::string& path, std::string_view advice) {
  const auto content = read_unpacked(path, advice);
  if (!content) return content.error();
  return Reader(path, {reinterpret_cast<const char*>(content->data()), content->size()}).read();
}

}  // namespace leeway::blame
