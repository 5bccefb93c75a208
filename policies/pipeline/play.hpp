#pragma once
// play: runs a table in virtual time. It finds when each operation runs, and how long stages idle.
//
// A stage does its operations in order, each as soon as its inputs have arrived. The output of a
// forward or a backward goes to the neighbour through a channel. Each pair of neighbours has one
// channel for activations and one for gradients; in a V, one of each in both directions. A message
// in transit does not occupy its sender, and is taken when the operation that reads it begins. A
// channel holds a bounded number of messages that are not taken yet; a stage whose message finds
// the channel full waits. The receiver identifies messages by micro-batch and chunk, so it can take
// them in any order. A message between two chunks of one stage takes no channel and no time.
//
// Operations done, messages sent and messages taken only grow, and each stage's order is fixed. So
// costs do not decide whether a table deadlocks.
#include <cstdint>
#include <limits>
#include <vector>

#include "core/expected.hpp"
#include "policies/pipeline/schedule.hpp"

namespace leeway::pipeline {

struct Costs {
  std::vector<OpCosts> chunks;  // by model chunk
  /// The time of an activation from model chunk c to c + 1, and of the gradient back.
  std::vector<std::int64_t> links;

  /// The same for all model chunks. `communication`: of one message.
  static Costs equal(int model_chunks, const OpCosts& costs, std::int64_t communication = 0);
  std::int64_t of(OpKind kind, int model_chunk) const;
};

/// When one operation ran, [begin, end). If its message found the channel full, the stage continued
/// after `end`.
struct Slot {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const Slot&) const = default;
};

struct Timeline {
  std::vector<std::vector<Slot>> slots;  // per stage, as Table::ops
  std::vector<std::int64_t> busy;        // per stage
  std::int64_t length = 0;               // from the first begin to the last end
  int most_in_channel = 0;               // messages not yet taken, in the fullest channel

  /// Idle time as a share of length * stages.
  Share bubble() const;
};

inline constexpr int kUnboundedChannel = std::numeric_limits<int>::max();

/// Requires operations in range, costs of each model chunk and of each link between them, all at
/// least 0, and a bound of at least 1; checked. If the table deadlocks, the error names a stage and
/// the message that it waits for.
Expected<Timeline> play(const Table& table, const Costs& costs,
                        int channel_bound = kUnboundedChannel);

/// The smallest bound of channels with which the table does not deadlock. Fails as play() does if
/// the table deadlocks with any bound.
Expected<int> least_channel_bound(const Table& table);

}  // namespace leeway::pipeline
