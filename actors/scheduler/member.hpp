#pragma once
// Member: what the scheduler knows of one pipeline, which is a worker where there is one stage.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/scheduler/partial_iterations.hpp"
#include "core/ids.hpp"
#include "core/mutant.hpp"
#include "messages/worker_scheduler.hpp"

namespace leeway {

struct Member {
  enum class State : std::uint8_t {
    absent,
    joined,
    admitting,
    running,
    idle,
    fencing,
    gone,
    stopped
  };

  /// One of its workers.
  struct Stage {
    Incarnation incarnation{1};
    bool joined = false;                    // under that, and may be admitted
    std::optional<Incarnation> comes_back;  // joined again before its old life was settled
    bool heard = true;                      // something came of it since it was told to start
    bool idle = false;                      // has said so since
    bool stopped = false;                   // has said so, and was asked to
    Clock clock;                            // acknowledged by its shards, when it said that
    bool ended = false;                     // and nothing was heard of a new life
    std::string end_reason;                 // of that
    std::optional<std::uint32_t> leaves;    // the life in which it was asked to

    bool leaving() const { return leaves == life_of(incarnation); }
  };

  State state = State::absent;
  std::vector<Stage> stages;
  Clock clock;                // acknowledged to all stages, as far as known
  std::size_t missing = 0;    // answers of shards to Admit or Fence
  View admitted_by;           // of the last Admit
  Iteration start;            // largest clock that a shard admitted a stage at
  bool uneven = false;        // shards admitted its stages at different clocks
  std::uint64_t starts = 0;   // that it was told, over all its lives: each has a number of its own
  Iteration late;             // backup: the round that it was told to go on with
  PartialIterations partial;  // what shards have of it, as they answer to Fence
  bool took_part = false;     // had started when it was evicted
  std::string end_reason;

  /// True when all of it is there.
  bool complete() const {
    const auto there = [](const Stage& stage) { return stage.joined; };
    return planted(Mutant::stage_joins_alone) ? std::any_of(stages.begin(), stages.end(), there)
                                              : std::all_of(stages.begin(), stages.end(), there);
  }
  bool leaving() const {
    return std::any_of(stages.begin(), stages.end(),
                       [](const Stage& stage) { return stage.leaving(); });
  }
  bool all_idle() const {
    return std::all_of(stages.begin(), stages.end(), [](const Stage& stage) { return stage.idle; });
  }
  bool all_stopped() const {
    return std::all_of(stages.begin(), stages.end(),
                       [](const Stage& stage) { return stage.stopped; });
  }
  /// By what its stages said when they became idle, or stopped.
  Clock least_clock() const {
    Clock least = stages.front().clock;
    for (const Stage& stage : stages) least = std::min(least, stage.clock);
    return least;
  }
  bool has_started() const { return state == State::running || state == State::idle; }
};

}  // namespace leeway
