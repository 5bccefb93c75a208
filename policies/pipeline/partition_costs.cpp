#include "policies/pipeline/partition_costs.hpp"

#include <algorithm>
#include <bit>

#include "core/check.hpp"

namespace leeway::pipeline {

namespace {

/// Larger figures are clamped to this, so that a sum of a few does not overflow.
constexpr std::int64_t kMost = kNoLimit / 16;

/// ceil(a * b / c).
std::int64_t scaled(std::int64_t a, std::int64_t b, std::int64_t c) {
  using Wide = __int128;
  return static_cast<std::int64_t>(std::min<Wide>((Wide{a} * b + c - 1) / c, kMost));
}

OpCosts operator+(OpCosts a, const OpCosts& b) {
  a.forward += b.forward;
  a.backward_input += b.backward_input;
  a.backward_weights += b.backward_weights;
  a.update += b.update;
  return a;
}

bool in_range(const Piece& piece) {
  for (const std::int64_t value :
       {piece.ns.forward, piece.ns.backward_input, piece.ns.backward_weights, piece.ns.update,
        piece.output_bytes, piece.handed_bytes, piece.kept_bytes, piece.first_bytes,
        piece.unread_bytes, piece.gradient_bytes, piece.working_bytes, piece.weight_bytes,
        piece.statistic_bytes})
    if (value < 0 || value > kMostOfPiece) return false;
  return true;
}

}  // namespace

PartitionCosts::PartitionCosts(const PartitionProblem& problem)
    : problem_(problem), placement_(placement_of(problem.spec)), sums_(1) {
  for (const std::int64_t bytes : {problem.input_bytes, problem.key_bytes, problem.label_bytes})
    LW_CHECK(bytes >= 0 && bytes <= kMostOfPiece, bytes);
  for (int stage = 0; stage < problem.spec.stages; ++stage)
    counts_.push_back(stage_counts(problem.spec, stage));
  working_.emplace_back();
  for (const Piece& piece : problem.pieces) {
    LW_CHECK(in_range(piece), piece.name);
    const Sums& before = sums_.back();
    sums_.push_back({before.ns + piece.ns, before.kept + piece.kept_bytes,
                     before.gradients + piece.gradient_bytes, before.weights + piece.weight_bytes,
                     before.statistics + piece.statistic_bytes});
    working_[0].push_back(piece.working_bytes);
  }
  for (std::size_t width = 1; 2 * width <= problem.pieces.size(); width *= 2) {
    const auto& narrow = working_.back();
    std::vector<std::int64_t> wide;
    for (std::size_t i = 0; i + 2 * width <= problem.pieces.size(); ++i)
      wide.push_back(std::max(narrow[i], narrow[i + width]));
    working_.push_back(std::move(wide));
  }
}

std::int64_t PartitionCosts::working(int first, int end) const {
  const auto width = static_cast<unsigned>(end - first);
  const auto level = static_cast<std::size_t>(std::bit_width(width) - 1);
  const auto& most = working_[level];
  return std::max(most[static_cast<std::size_t>(first)],
                  most[static_cast<std::size_t>(end) - (std::size_t{1} << level)]);
}

OpCosts PartitionCosts::time(int chunk, int first, int end) const {
  const OpCosts& a = sums(first).ns;
  const OpCosts& b = sums(end).ns;
  const std::int64_t speed = problem_.devices[static_cast<std::size_t>(stage_of(chunk))].speed;
  const auto on_device = [&](std::int64_t ns) { return scaled(ns, kUnitSpeed, speed); };
  return {on_device(b.forward - a.forward), on_device(b.backward_input - a.backward_input),
          on_device(b.backward_weights - a.backward_weights), on_device(b.update - a.update)};
}

std::int64_t PartitionCosts::link_time(std::int64_t bytes) const {
  if (problem_.link_bytes_per_second == 0) return 0;
  return scaled(bytes, 1'000'000'000, problem_.link_bytes_per_second);
}

std::int64_t PartitionCosts::bytes_into(int chunk, int first) const {
  return chunk == 0 || placement_.stays(chunk - 1) ? 0 : piece(first - 1).output_bytes;
}

std::int64_t PartitionCosts::pace(int chunk, int first, int end) const {
  return std::max(time(chunk, first, end).of_micro_batch(),
                  2 * link_time(bytes_into(chunk, first)));
}

ChunkMemory PartitionCosts::needs(int chunk, int first, int end) const {
  const auto stage = static_cast<std::size_t>(stage_of(chunk));
  const Sums &from = sums(first), &to = sums(end);
  const std::int64_t input = first == 0 ? problem_.input_bytes : piece(first - 1).handed_bytes;
  const std::int64_t keys_and_labels =
      problem_.key_bytes + (end == pieces() ? problem_.label_bytes : 0);
  // A chunk of views keeps nothing: its output is its input.
  const std::int64_t activations =
      std::max<std::int64_t>(0, to.kept - from.kept + piece(first).first_bytes -
                                    (end < pieces() ? piece(end - 1).unread_bytes : 0));
  ChunkMemory needs{.kept = input + keys_and_labels + activations,
                    .pending = to.gradients - from.gradients,
                    .shared = 0,
                    .working = working(first, end),
                    .weights = to.weights - from.weights,
                    .statistics = to.statistics - from.statistics};
  if (stage < problem_.recompute.size() && problem_.recompute[stage]) {
    needs.kept -= activations;
    needs.shared = activations;
  }
  return needs;
}

StageMemory PartitionCosts::memory(int chunk, int first, int end) const {
  const ChunkMemory one = needs(chunk, first, end);
  return stage_memory(counts_[static_cast<std::size_t>(stage_of(chunk))], {&one, 1},
                      problem_.optimizer_slots);
}

bool PartitionCosts::fits(int chunk, int first, int end) const {
  return memory(chunk, first, end).total() <=
         problem_.devices[static_cast<std::size_t>(stage_of(chunk))].memory_bytes;
}

std::vector<StageMemory> PartitionCosts::memory_of_stages(const std::vector<int>& ends) const {
  std::vector<std::vector<ChunkMemory>> needed(problem_.devices.size());
  int first = 0;
  for (int chunk = 0; chunk < chunks(); ++chunk) {
    const int end = ends[static_cast<std::size_t>(chunk)];
    needed[static_cast<std::size_t>(stage_of(chunk))].push_back(needs(chunk, first, end));
    first = end;
  }
  std::vector<StageMemory> all;
  for (std::size_t stage = 0; stage < needed.size(); ++stage)
    all.push_back(stage_memory(counts_[stage], needed[stage], problem_.optimizer_slots));
  return all;
}

bool PartitionCosts::all_fit(const std::vector<int>& ends) const {
  const auto memory = memory_of_stages(ends);
  for (std::size_t stage = 0; stage < memory.size(); ++stage)
    if (memory[stage].total() > problem_.devices[stage].memory_bytes) return false;
  return true;
}

Partition PartitionCosts::evaluate(const std::vector<int>& ends) const {
  Partition partition;
  partition.memory = memory_of_stages(ends);
  // Per micro-batch: the time of a stage with all of its chunks, and of its link to the next stage
  // in both directions.
  std::vector<std::int64_t> computes(problem_.devices.size()), sends(computes.size());
  int first = 0;
  for (int index = 0; index < chunks(); ++index) {
    PieceRange chunk{.first = first, .end = ends[static_cast<std::size_t>(index)], .ns = {}};
    chunk.ns = time(index, chunk.first, chunk.end);
    if (index + 1 < chunks()) chunk.link_bytes = bytes_into(index + 1, chunk.end);
    chunk.link_ns = link_time(chunk.link_bytes);
    partition.crossing_bytes += chunk.link_bytes;
    computes[static_cast<std::size_t>(stage_of(index))] += chunk.ns.of_micro_batch();
    if (index + 1 < chunks())
      sends[static_cast<std::size_t>(placement_.link_after(index))] += 2 * chunk.link_ns;
    partition.chunks.push_back(chunk);
    first = chunk.end;
  }
  for (std::size_t stage = 0; stage < computes.size(); ++stage)
    for (const bool link : {false, true}) {
      const std::int64_t pace = link ? sends[stage] : computes[stage];
      if (pace <= partition.slowest_ns) continue;
      partition.slowest_ns = pace;
      partition.slowest = static_cast<int>(stage);
      partition.by_link = link;
    }
  return partition;
}

}  // namespace leeway::pipeline
