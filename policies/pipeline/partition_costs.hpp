#pragma once
// PartitionCosts: what any contiguous part of a model takes on any of its devices, quickly.
#include <cstdint>
#include <vector>

#include "policies/pipeline/partition.hpp"

namespace leeway::pipeline {

/// Refers to the problem. Part p of a pipeline is on stage p % stages; [first, end) are pieces.
class PartitionCosts {
 public:
  explicit PartitionCosts(const PartitionProblem& problem);

  int parts() const { return problem_.spec.stages * problem_.spec.chunks; }
  int pieces() const { return static_cast<int>(problem_.pieces.size()); }

  /// Of a micro-batch: the longer of the part's computation and of the link into it.
  std::int64_t pace(int part, int first, int end) const;
  /// What crosses the cut before `first`, one way; 0 for the first piece.
  std::int64_t bytes_into(int first) const;
  /// Whether the part alone fits into the memory of its stage.
  bool fits(int part, int first, int end) const;
  /// Whether every stage fits with all of its parts.
  bool all_fit(const std::vector<int>& ends) const;

  /// Of the stage, as if the part were all that it has.
  StageMemory memory(int part, int first, int end) const;

  Partition evaluate(const std::vector<int>& ends) const;

 private:
  struct Sums {
    OpCosts ns{0, 0, 0, 0};
    std::int64_t kept = 0, gradients = 0, weights = 0, statistics = 0;
  };

  int stage_of(int part) const { return part % problem_.spec.stages; }
  const Piece& piece(int index) const { return problem_.pieces[static_cast<std::size_t>(index)]; }
  const Sums& sums(int index) const { return sums_[static_cast<std::size_t>(index)]; }
  OpCosts time(int part, int first, int end) const;
  std::int64_t link_time(std::int64_t bytes) const;
  ChunkMemory needs(int part, int first, int end) const;
  std::vector<StageMemory> memory_of_stages(const std::vector<int>& ends) const;
  std::int64_t working(int first, int end) const;

  const PartitionProblem& problem_;
  std::vector<StageCounts> counts_;                 // per stage
  std::vector<Sums> sums_;                          // over the pieces before
  std::vector<std::vector<std::int64_t>> working_;  // [k][i]: the most of pieces [i, i + 2^k)
};

}  // namespace leeway::pipeline
