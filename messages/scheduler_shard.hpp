#pragma once
// Membership as the shards see it, and cuts: values of scheduler_shard.capnp, which documents each
// field.
#include <cstdint>
#include <vector>

#include "core/ids.hpp"
#include "messages/worker_shard.hpp"

namespace leeway::msg {

struct Admit {
  WorkerId worker;
  Incarnation incarnation;
  Iteration iteration;
  View view;
};

struct Admitted {
  WorkerId worker;
  Iteration iteration;
  View view;
};

struct Raise {
  WorkerId worker;
  Iteration iteration;
  View view;
};

struct Fence {
  WorkerId worker;
  View view;
};

struct Fenced {
  WorkerId worker;
  Clock clock;
  std::vector<std::uint32_t> applied;
};

struct Remove {
  WorkerId worker;
  View view;
};

struct Bound {
  Iteration from;
  std::uint32_t staleness = 0;
};

struct RoundClosed {
  Iteration round;
  std::vector<WorkerId> contributors;
  View view;
};

struct CloseRound {
  Iteration round;
  std::vector<WorkerId> contributors;
  View view;
};

struct Snapshot {
  std::uint64_t snapshot = 0;
  Iteration iteration;
  bool immediate = false;
};

struct SnapshotVote {
  std::uint64_t snapshot = 0;
  Iteration iteration;
  Iteration largest;
};

struct Finish {};

struct SnapshotState {
  std::uint64_t snapshot = 0;
  Iteration iteration;
  bool final = false;
  std::vector<BlockData> blocks;
};

}  // namespace leeway::msg
