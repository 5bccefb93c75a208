#include "policies/pipeline/partition.hpp"

#include <algorithm>
#include <array>

#include "core/check.hpp"
#include "core/text.hpp"
#include "policies/pipeline/partition_costs.hpp"
#include "policies/pipeline/play.hpp"

namespace leeway::pipeline {

namespace {

/// Dynamic programming over (number of chunks, pieces that they cover).
class Search {
 public:
  explicit Search(const PartitionCosts& costs, bool within_memory)
      : costs_(costs),
        chunks_(costs.chunks()),
        pieces_(costs.pieces()),
        within_memory_(within_memory) {}

  /// The ends of the best split's chunks; empty if no split fits.
  std::vector<int> best() const {
    const std::int64_t pace =
        least([&](int chunk, int first, int end) { return costs_.pace(chunk, first, end); });
    return pace == kNoLimit ? std::vector<int>() : fewest_bytes(pace);
  }

  /// The minimum over all splits of the maximum of `of(chunk, first, end)` over its chunks.
  template <class Of>
  std::int64_t least(Of of) const {
    Row before = start();
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      Row after(before.size(), kNoLimit);
      for_each_range(chunk, [&](int first, int end) {
        const std::int64_t so_far = before[at(first)];
        if (so_far >= after[at(end)]) return;
        const std::int64_t most = std::max(so_far, of(chunk, first, end));
        if (most < after[at(end)] && fits(chunk, first, end)) after[at(end)] = most;
      });
      before = std::move(after);
    }
    return before.back();
  }

 private:
  using Row = std::vector<std::int64_t>;

  bool fits(int chunk, int first, int end) const {
    return !within_memory_ || costs_.fits(chunk, first, end);
  }

  /// Among the splits of that pace, the one that sends the fewest bytes. Among equals, the one
  /// whose last chunk begins first, then the one whose second to last chunk does.
  std::vector<int> fewest_bytes(std::int64_t pace) const {
    std::vector<Row> bytes{start()};
    std::vector<std::vector<int>> best_first;
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      bytes.emplace_back(bytes.front().size(), kNoLimit);
      best_first.emplace_back(bytes.front().size(), 0);
      const Row& before = bytes[at(chunk)];
      Row& after = bytes.back();
      for_each_range(chunk, [&](int first, int end) {
        const std::int64_t so_far = before[at(first)];
        if (so_far == kNoLimit || costs_.pace(chunk, first, end) > pace) return;
        const std::int64_t sent = so_far + costs_.bytes_into(chunk, first);
        if (sent >= after[at(end)] || !fits(chunk, first, end)) return;
        after[at(end)] = sent;
        best_first.back()[at(end)] = first;
      });
    }
    std::vector<int> ends(at(chunks_), pieces_);
    for (int chunk = chunks_ - 1; chunk > 0; --chunk)
      ends[at(chunk) - 1] = best_first[at(chunk)][at(ends[at(chunk)])];
    return ends;
  }

  Row start() const {
    Row row(at(pieces_) + 1, kNoLimit);
    row[0] = 0;
    return row;
  }
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  /// All ranges of a chunk that leave at least one piece for each other chunk.
  template <class Visit>
  void for_each_range(int chunk, Visit visit) const {
    const int behind = chunks_ - chunk - 1;
    for (int end = chunk + 1; end <= pieces_ - behind; ++end) {
      if (behind == 0 && end < pieces_) continue;
      for (int first = chunk; first < end; ++first)
        if (chunk > 0 || first == 0) visit(first, end);
    }
  }

  const PartitionCosts& costs_;
  const int chunks_, pieces_;
  const bool within_memory_;
};

/// The flag with which a spec of too many chunks or stages fits a model of this many pieces.
std::string remedy_for(Spec spec, int pieces) {
  const Spec given = spec;
  spec.chunks = std::max(1, pieces / spec.stages);
  if (given.chunks > 1 && spec.stages <= pieces && validate(spec))
    return concat("--chunks ", spec.chunks);
  spec = given;
  spec.stages = std::max(1, pieces / spec.chunks);
  if (spec.chunks <= pieces && validate(spec)) return concat("--stages ", spec.stages);
  return concat("--schedule 1f1b, and --stages ", std::min(given.stages, pieces));
}

Status check_problem(const PartitionProblem& problem) {
  if (auto valid = validate(problem.spec); !valid) return valid;
  const auto pieces = static_cast<int>(problem.pieces.size());
  LW_CHECK(pieces >= 1 && pieces <= kMaxPieces, pieces);
  LW_CHECK(problem.link_bytes_per_second >= 0 && problem.optimizer_slots >= 0,
           problem.link_bytes_per_second, problem.optimizer_slots);
  const Spec& spec = problem.spec;
  LW_CHECK(problem.devices.size() == static_cast<std::size_t>(spec.stages), problem.devices.size());
  for (const auto& device : problem.devices)
    LW_CHECK(device.speed >= 1 && device.speed <= kMostOfPiece && device.memory_bytes >= 0,
             device.speed, device.memory_bytes);
  if (spec.stages * spec.chunks <= pieces) return {};
  const std::string remedy = remedy_for(spec, pieces);
  const std::string model = concat(" too many for a model that can be split into ", pieces,
                                   pieces == 1 ? " piece" : " pieces", "; give ", remedy);
  if (spec.chunks == 1) return Error{concat("stages: ", spec.stages, " are", model)};
  return Error{concat("chunks: ", spec.chunks, " on each of ", spec.stages,
                      spec.stages == 1 ? " stage are" : " stages are", model)};
}

/// The best split that fits; empty if no split fits.
std::vector<int> best_that_fits(const PartitionCosts& costs, int chunks) {
  // With several chunks per stage, memory depends on all of them, so it is checked last.
  auto ends = Search(costs, chunks == 1).best();
  if (!ends.empty() && !costs.all_fit(ends)) ends.clear();
  return ends;
}

bool has_fitting_split(const PartitionProblem& problem) {
  if (!check_problem(problem)) return false;
  return !best_that_fits(PartitionCosts(problem), problem.spec.chunks).empty();
}

bool are_alike(const std::vector<DeviceSpec>& devices) {
  return std::all_of(devices.begin(), devices.end(), [&](const DeviceSpec& device) {
    return device.memory_bytes == devices[0].memory_bytes && device.speed == devices[0].speed;
  });
}

/// The smallest memory, the same for all devices, with which a split fits.
std::int64_t least_memory(const PartitionProblem& problem) {
  const PartitionCosts costs(problem);
  const Search search(costs, false);
  if (problem.spec.chunks == 1)
    return search.least(
        [&](int chunk, int first, int end) { return costs.memory(chunk, first, end).total(); });
  std::int64_t most = 0;
  for (const auto& memory : costs.evaluate(search.best()).memory)
    most = std::max(most, memory.total());
  return most;
}

using Units = std::array<const char*, 4>;
constexpr Units kInWords{" bytes", " kB", " MB", " GB"}, kInFlag{"", "kB", "MB", "GB"};

/// In the largest unit that keeps two digits.
std::string size(std::int64_t bytes, const Units& units, bool round_up) {
  std::size_t unit = 0;
  for (; bytes >= 100'000 && unit + 1 < units.size(); ++unit)
    bytes = (bytes + (round_up ? 999 : 0)) / 1000;
  return concat(bytes, units[unit]);
}

/// Settings that work: another schedule, more stages, more memory.
std::string remedies(const PartitionProblem& problem) {
  std::vector<std::string> out;
  PartitionProblem other = problem;
  other.spec.schedule = "1f1b";
  other.spec.chunks = 1;
  if (problem.spec.schedule != "1f1b" && has_fitting_split(other))
    out.emplace_back("--schedule 1f1b");
  constexpr int kMoreStages = 16;
  other = problem;
  for (int more = 1; are_alike(problem.devices) && more <= kMoreStages; ++more) {
    // Adding stages requires devices that are alike.
    other.spec.stages = problem.spec.stages + more;
    other.devices.push_back(problem.devices.front());
    if (!has_fitting_split(other)) continue;
    out.push_back(concat("--stages ", other.spec.stages));
    break;
  }
  out.push_back(concat("--memory ", size(least_memory(problem), kInFlag, true)));
  return join(out, ", or ");
}

/// Names the first stage that does not fit into its device.
Error does_not_fit(const PartitionProblem& problem, const Partition& partition,
                   const std::string& advice) {
  for (std::size_t stage = 0; stage < problem.devices.size(); ++stage) {
    const std::int64_t needed = partition.memory[stage].total();
    const std::int64_t available = problem.devices[stage].memory_bytes;
    if (needed <= available) continue;
    return Error{concat("stage ", stage, " (layers ",
                        text_of(partition.chunks[stage], problem.pieces),
                        problem.spec.chunks > 1 ? " and its other chunks" : "", ") needs ",
                        size(needed, kInWords, true), " with ", problem.spec.schedule,
                        ", and its device has ", size(available, kInWords, false), "; ", advice)};
  }
  LW_CHECK(false, "all stages fit");
  return Error{};
}

}  // namespace

Costs Partition::costs() const {
  Costs costs;
  for (const PieceRange& chunk : chunks) {
    costs.chunks.push_back(chunk.ns);
    if (costs.links.size() + 1 < chunks.size()) costs.links.push_back(chunk.link_ns);
  }
  return costs;
}

Expected<Partition> best_partition(const PartitionProblem& problem) {
  if (auto valid = check_problem(problem); !valid) return valid.error();
  const PartitionCosts costs(problem);
  const auto ends = best_that_fits(costs, problem.spec.chunks);
  if (!ends.empty()) return costs.evaluate(ends);
  const auto without_limit = costs.evaluate(Search(costs, false).best());
  return does_not_fit(problem, without_limit,
                      concat("no other split fits; give ", remedies(problem)));
}

Expected<Partition> partition_at(const PartitionProblem& problem, const std::vector<int>& ends) {
  if (auto valid = check_problem(problem); !valid) return valid.error();
  const Spec& spec = problem.spec;
  const auto chunks = static_cast<std::size_t>(spec.stages * spec.chunks);
  if (ends.size() != chunks)
    return Error{concat("the split has ", ends.size(), ends.size() == 1 ? " chunk" : " chunks",
                        ", and ", spec.stages, " stages with ", spec.chunks,
                        spec.chunks == 1 ? " chunk" : " chunks", " each make ", chunks, "; give ",
                        chunks, " chunks, or --stages ",
                        ends.size() / static_cast<std::size_t>(spec.chunks))};
  for (std::size_t i = 0; i < ends.size(); ++i)
    LW_CHECK(ends[i] > (i == 0 ? 0 : ends[i - 1]) &&
                 (i + 1 < ends.size() || ends[i] == static_cast<int>(problem.pieces.size())),
             i, ends[i]);
  const PartitionCosts costs(problem);
  if (costs.all_fit(ends)) return costs.evaluate(ends);
  const auto best = best_partition(problem);
  return does_not_fit(problem, costs.evaluate(ends),
                      best ? concat("the split ", text_of(*best, problem.pieces), " fits")
                           : concat("no split fits; give ", remedies(problem)));
}

}  // namespace leeway::pipeline
