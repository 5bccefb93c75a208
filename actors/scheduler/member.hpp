#pragma once
// Member: the scheduler's state of one pipeline, host group or single worker. Its workers are
// called stages here, also those of a group.
//
// The states of a member, one transition per line:
//
// - absent -- Join of all stages --> joined -- all members have joined --> admitting
//
// - admitting -- all shards know all stages --> running
//
// - running -- Idle of all stages --> idle -- samples came back --> admitting
//
// - any of these -- a stage ends --> fencing -- all shards answered for all stages --> gone
//
// - gone -- Join of all stages --> joined
//
// - any but fencing and gone -- Stopped of all stages, after Stop --> stopped
//
// - the same -- Stopped of all stages, after the Stop of a Leave --> gone
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/scheduler/partial_iterations.hpp"
#include "core/end_reason.hpp"
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

  /// One worker of the pipeline.
  struct Stage {
    JoinNonce nonce = first_nonce(1);     // of its last Join
    bool joined = false;                  // with that Join, and may be admitted
    std::optional<JoinNonce> rejoins;     // joins again when the last session is fenced
    bool heard = true;                    // has sent a message of the present session
    bool idle = false;                    // has sent Idle since the last Start
    bool stopped = false;                 // has sent Stopped after a Stop
    Clock clock;                          // acknowledged by its shards, as of Idle or Stopped
    bool ended = false;                   // has ended, and has not joined again
    EndReason end_reason;                 // of its last end
    std::optional<std::uint32_t> leaves;  // the launch in which it got a Leave
    bool left_by_itself = false;          // it sent the Leave
    std::uint32_t residual_counted = 0;   // the last launch whose residual is counted as lost

    bool leaving() const { return leaves == launch_of(nonce); }
  };

  State state = State::absent;
  std::vector<Stage> stages;
  Clock clock;                // acknowledged to all stages, as far as known
  std::size_t missing = 0;    // answers of shards to the last Admit or Fence
  View admitted_by;           // of the last Admit
  Iteration start;            // largest clock at which a shard admitted a stage
  bool uneven = false;        // shards admitted its stages at different clocks
  Session session;            // of the last Admit; it begins with the Start
  Iteration resume_round;     // the round after its last dropped push
  PartialIterations partial;  // of its iterations, from the answers to the Fence
  bool took_part = false;     // had started when it was evicted
  std::uint64_t barrier = 0;  // the barrier at which it waits; 0: none
  std::string end_reason;
  WorkerId ended_worker;  // the cause of the end; in a pipeline one of its stages
  bool rejoined = false;  // its end was noticed only when it joined again

  /// True when all shards have admitted the member.
  bool is_ready() const { return state == State::admitting && missing == 0; }
  /// True when all stages have joined.
  bool complete() const {
    const auto joined = [](const Stage& stage) { return stage.joined; };
    return planted(Mutant::stage_joins_alone) ? std::any_of(stages.begin(), stages.end(), joined)
                                              : std::all_of(stages.begin(), stages.end(), joined);
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
  /// The least clock that its stages sent with Idle or Stopped.
  Clock least_clock() const {
    Clock least = stages.front().clock;
    for (const Stage& stage : stages) least = std::min(least, stage.clock);
    return least;
  }
  bool has_started() const { return state == State::running || state == State::idle; }
  bool is_out() const { return state == State::fencing || state == State::gone; }
};

}  // namespace leeway
