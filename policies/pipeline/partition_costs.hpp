#pragma once
// PartitionCosts: time and memory of any range of pieces on any device, in constant time.
#include <cstdint>
#include <vector>

#include "policies/pipeline/partition.hpp"

namespace leeway::pipeline {

/// Keeps a reference to the problem. [first, end) are the pieces of model chunk `chunk`.
class PartitionCosts {
 public:
  explicit PartitionCosts(const PartitionProblem& problem);

  int chunks() const { return problem_.spec.stages * problem_.spec.chunks; }
  int pieces() const { return static_cast<int>(problem_.pieces.size()); }

  /// Per micro-batch: the time of the chunk's computation, or of the link into it, if longer.
  std::int64_t pace(int chunk, int first, int end) const;
  /// Bytes that a chunk that begins with `first` receives from another stage, one way.
  std::int64_t bytes_into(int chunk, int first) const;
  /// Whether the chunk fits into the memory of its stage, ignoring other chunks.
  bool fits(int chunk, int first, int end) const;
  /// Whether each stage fits with all of its chunks.
  bool all_fit(const std::vector<int>& ends) const;

  /// The memory of a stage that has only this chunk.
  StageMemory memory(int chunk, int first, int end) const;

  Partition evaluate(const std::vector<int>& ends) const;

 private:
  struct Sums {
    OpCosts ns{0, 0, 0, 0};
    std::int64_t kept = 0, gradients = 0, weights = 0, statistics = 0;
  };

  int stage_of(int chunk) const { return placement_.stage_of(chunk); }
  const Piece& piece(int index) const { return problem_.pieces[static_cast<std::size_t>(index)]; }
  const Sums& sums(int index) const { return sums_[static_cast<std::size_t>(index)]; }
  OpCosts time(int chunk, int first, int end) const;
  std::int64_t link_time(std::int64_t bytes) const;
  ChunkMemory needs(int chunk, int first, int end) const;
  std::vector<StageMemory> memory_of_stages(const std::vector<int>& ends) const;
  std::int64_t working(int first, int end) const;

  const PartitionProblem& problem_;
  const Placement placement_;
  std::vector<StageCounts> counts_;                 // per stage
  std::vector<Sums> sums_;                          // of all earlier pieces
  std::vector<std::vector<std::int64_t>> working_;  // [k][i]: maximum over pieces [i, i + 2^k)
};

}  // namespace leeway::pipeline
