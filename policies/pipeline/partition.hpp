#pragma once
// Partition: which layers of a model go to which stage, so that the slowest stage is as fast as can
// be.
//
// In a pipeline that is full, everybody goes at the pace of whoever takes longest for a
// micro-batch: a stage with its forward and backward, or a link with an activation one way and its
// gradient back. The two go on at the same time, so the pace is the larger, not the sum. What is
// searched for is the split into contiguous parts with the least such pace; of several the one that
// sends the fewest bytes.
//
// Source: Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP
// 2019, section 3.1, without its replicated stages, and with devices that differ: stage s is on
// device s, and their order is not searched.
//
// With several chunks a stage, the part that takes longest is made as short as can be; a stage has
// several parts, whose sum is its pace.
//
// All integers: nanoseconds and bytes. A split is decided alike on every node.
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
/// Times and bytes of a piece are below; so nothing overflows.
inline constexpr std::int64_t kMostOfPiece = std::int64_t{1} << 48;

/// A part of the model that is never cut: a layer, or a block whose inside is crossed by more than
/// one tensor. Times, and bytes that cross, are of a micro-batch of the usual size; bytes that
/// count as memory are of the largest there ever is.
struct Piece {
  std::string name;                  // "3"; what a split by hand calls it
  std::string kind;                  // "linear"; likewise, where it is the only one
  OpCosts ns{0, 0, 0, 0};            // on a device of kUnitSpeed
  std::int64_t output_bytes = 0;     // what crosses a cut behind it
  std::int64_t handed_bytes = 0;     // the same as memory: the input of a part behind it
  std::int64_t kept_bytes = 0;       // from forward until backward, without its input
  std::int64_t first_bytes = 0;      // kept in addition where it is the first of its part
  std::int64_t unread_bytes = 0;     // not kept where it is the last: an output for others alone
  std::int64_t gradient_bytes = 0;   // of outputs, kept between the halves of a backward
  std::int64_t working_bytes = 0;    // while it is computed
  std::int64_t weight_bytes = 0;     // trained
  std::int64_t statistic_bytes = 0;  // not trained
};

/// What a stage runs on.
struct DeviceSpec {
  std::int64_t speed = kUnitSpeed;  // thousandths
  std::int64_t memory_bytes = kNoLimit;
};

struct PartitionProblem {
  std::vector<Piece> pieces;
  std::int64_t input_bytes = 0;            // of a micro-batch, kept by the first part
  std::int64_t told_bytes = 0;             // likewise, by each part: what names its samples
  std::int64_t label_bytes = 0;            // likewise, by the last part in addition
  std::vector<bool> recompute;             // by stage: keeps inputs alone; others do not
  std::vector<DeviceSpec> devices;         // one a stage
  std::int64_t link_bytes_per_second = 0;  // one way; 0: messages take no time
  int optimizer_slots = 0;  // arrays of optimizer state, each as large as the weights
  Spec spec;                // of the schedule, for what a stage keeps
};

/// One part: pieces [first, end).
struct Part {
  int first = 0;
  int end = 0;
  OpCosts ns;                // of a micro-batch, on its device
  std::int64_t link_ns = 0;  // of the activation out of it, one way; 0 for the last
  std::int64_t link_bytes = 0;
  bool operator==(const Part&) const = default;
};

struct Partition {
  std::vector<Part> parts;          // stages * chunks, see table.hpp
  std::vector<StageMemory> memory;  // per stage
  std::int64_t slowest_ns = 0;      // the pace: of a micro-batch, if the pipeline is full
  int slowest = 0;                  // the stage that sets it, or whose link to the next one does
  bool by_link = false;
  std::int64_t crossing_bytes = 0;  // of all links, one way

  /// What the schedule's table is to be played with.
  Costs costs() const;
};

/// The best split. Errors name the setting and the nearest one that works: more parts than pieces;
/// memory that is too little however the model is split, for which stage, and what would do.
Expected<Partition> best_partition(const PartitionProblem& problem);

/// What a split by hand comes to: part p ends before piece ends[p], the last one at the end.
/// Refused like the best one, if a stage does not fit into its memory.
Expected<Partition> partition_at(const PartitionProblem& problem, const std::vector<int>& ends);

/// Reads a split: the first and the last piece of each part, "0-3,4-7", by name, or by kind where
/// there is one of that kind alone; a part of one piece is "4". Gives the ends for partition_at().
/// The error says which piece is unknown, missing, or there twice.
Expected<std::vector<int>> parse_split(const std::string& text, const std::vector<Piece>& pieces);

/// "0-3" of a part, and "0-3,4-7" of a partition: what parse_split() reads.
std::string text_of(const Part& part, const std::vector<Piece>& pieces);
std::string text_of(const Partition& partition, const std::vector<Piece>& pieces);

}  // namespace leeway::pipeline
