#pragma once
// Partition: assigns the layers of a model to stages so that the slowest stage is as fast as
// possible.
//
// The pace of a full pipeline is the time of its slowest element per micro-batch: a stage with its
// forward and backward, or a link with an activation and the gradient back. Stages and links work
// at the same time, so the pace is their maximum, not their sum. The search finds the split into
// contiguous chunks with the smallest pace, and among equals the one that sends the fewest bytes.
//
// Source: Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP
// 2019, section 3.1, without replicated stages, and with devices that differ: stage s is on device
// s, and the search does not change their order.
//
// With several chunks per stage, the search minimizes the time of the slowest chunk. A stage's pace
// is the sum over its chunks.
//
// All integers, in nanoseconds and bytes, so that each node computes the same split.
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "policies/pipeline/play.hpp"
#include "policies/pipeline/schedule.hpp"
#include "policies/pipeline/stage_memory.hpp"

namespace leeway::pipeline {

inline constexpr int kMaxPieces = 4096;
inline constexpr std::int64_t kUnitSpeed = 1000;
inline constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
/// Bound of the times and bytes of a piece, so that sums do not overflow.
inline constexpr std::int64_t kMostOfPiece = std::int64_t{1} << 48;

/// Layers that no split separates: a layer, or a block whose inside is crossed by more than one
/// tensor. Times and output_bytes are of a micro-batch of the usual size; all other bytes are
/// memory of the largest micro-batch.
struct Piece {
  std::string name;                  // "3": its name in a split by hand
  std::string kind;                  // "linear": its name if it is the only one of its kind
  OpCosts ns{0, 0, 0, 0};            // on a device of kUnitSpeed
  std::int64_t output_bytes = 0;     // sent if the next piece is on another stage
  std::int64_t handed_bytes = 0;     // the same in memory: the input that the next chunk keeps
  std::int64_t kept_bytes = 0;       // from forward until backward, without its input
  std::int64_t first_bytes = 0;      // kept in addition if it is the first of its chunk
  std::int64_t unread_bytes = 0;     // not kept if it is the last: only the next chunk reads it
  std::int64_t gradient_bytes = 0;   // of outputs, kept for a backward for weights
  std::int64_t working_bytes = 0;    // while it is computed
  std::int64_t weight_bytes = 0;     // trained
  std::int64_t statistic_bytes = 0;  // not trained
};

/// The device of a stage.
struct DeviceSpec {
  std::int64_t speed = kUnitSpeed;  // thousandths
  std::int64_t memory_bytes = kNoLimit;
};

struct PartitionProblem {
  std::vector<Piece> pieces;
  std::int64_t input_bytes = 0;            // per micro-batch, kept by the first chunk
  std::int64_t key_bytes = 0;              // per micro-batch, kept by each chunk
  std::int64_t label_bytes = 0;            // per micro-batch, kept by the last chunk
  std::vector<bool> recompute;             // by stage; missing entries are false
  std::vector<DeviceSpec> devices;         // one per stage
  std::int64_t link_bytes_per_second = 0;  // one way; 0: messages take no time
  int optimizer_slots = 0;  // arrays of optimizer state, each as large as the weights
  Spec spec;                // the schedule decides what a stage keeps
};

/// Pieces [first, end): one model chunk.
struct PieceRange {
  int first = 0;
  int end = 0;
  OpCosts ns;                // per micro-batch, on its device
  std::int64_t link_ns = 0;  // per activation that it sends to another stage, one way
  std::int64_t link_bytes = 0;
  bool operator==(const PieceRange&) const = default;
};

struct Partition {
  std::vector<PieceRange> chunks;   // by model chunk (see table.hpp)
  std::vector<StageMemory> memory;  // per stage
  std::int64_t slowest_ns = 0;      // the pace: per micro-batch, in a full pipeline
  int slowest = 0;                  // the stage that sets it, or whose link to the next stage does
  bool by_link = false;
  std::int64_t crossing_bytes = 0;  // of all links, one way

  /// The costs for play().
  Costs costs() const;
};

/// The best split. Fails if there are more chunks than pieces, or if no split fits into memory. The
/// error names the setting, or the stage, and the nearest setting that works.
Expected<Partition> best_partition(const PartitionProblem& problem);

/// The given split: model chunk c ends before piece ends[c], the last one at the end. Fails if a
/// stage does not fit into its memory.
Expected<Partition> partition_at(const PartitionProblem& problem, const std::vector<int>& ends);

/// Reads a split: the first and the last piece of each chunk, "0-3,4-7", by name, or by kind if it
/// is the only one of its kind. A chunk of one piece is "4". Returns the ends for partition_at().
/// The error names a piece that is unknown, missing or repeated.
Expected<std::vector<int>> parse_split(const std::string& text, const std::vector<Piece>& pieces);

/// "0-3" of a chunk, and "0-3,4-7" of a partition: what parse_split() reads.
std::string text_of(const PieceRange& chunk, const std::vector<Piece>& pieces);
std::string text_of(const Partition& partition, const std::vector<Piece>& pieces);

}  // namespace leeway::pipeline
