#pragma once
// play: a table in virtual time. What each operation waits for, when it runs, how long stages idle.
//
// A stage does its operations one after the other, each as soon as what it reads is there. What a
// forward or a backward gives goes to the neighbour through a channel: one for the activations and
// one for the gradients between each two stages. A message takes its time on the way without
// keeping the sender, it is taken when the operation that reads it begins, and a channel holds so
// many that are not taken yet; a stage whose message has no place waits until it has. Messages are
// told by micro-batch and chunk, so they need not be taken in the order of sending. What a stage
// sends itself, from chunk to chunk on a single stage, goes through no channel and takes no time.
//
// All waiting is for something that only grows (operations done, messages sent, messages taken),
// and every stage's order is fixed: so whether a table comes to its end does not depend on costs.
#include <cstdint>
#include <limits>
#include <vector>

#include "core/expected.hpp"
#include "policies/pipeline/schedule.hpp"

namespace leeway::pipeline {

/// Of every part of the model, in the order in which a micro-batch goes through them.
struct Costs {
  std::vector<OpCosts> parts;
  /// Of an activation from part p to part p + 1, and of the gradient back.
  std::vector<std::int64_t> links;

  /// All alike. `communication`: of one message.
  static Costs equal(int parts, const OpCosts& costs, std::int64_t communication = 0);
  std::int64_t of(OpKind kind, int part) const;
};

/// When one operation ran, [begin, end). Of an operation whose message found no place the stage
/// went on later than `end`.
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

  /// Time in which stages did nothing, as a share of length * stages.
  Share bubble() const;
};

inline constexpr int kUnboundedChannel = std::numeric_limits<int>::max();

/// Requires operations in range, a cost for each part and a link between each two of them, all at
/// least 0, and a bound of at least 1; checked. The error says which stage waits for what, if the
/// table comes to no end.
Expected<Timeline> play(const Table& table, const Costs& costs,
                        int channel_bound = kUnboundedChannel);

/// The least bound of channels with which the table comes to its end; the error is play()'s, when
/// there is none.
Expected<int> least_channel_bound(const Table& table);

}  // namespace leeway::pipeline
