#pragma once
// ApplyFirstPushes: a round is one update of its first pushes; the others are dropped (backup,
// quorum).
//
// docs/staleness.md, "Backup workers". The open round is the one at min_clock. Its pushes
// are held until the round is closed. The leading shard proposes to close the round when enough
// whole pushes have arrived and the grace window is over. The scheduler decides, and orders all
// shards to close it in one sequence with its orders about the membership. So all shards agree on
// the pushes of a round, and on the workers whose pushes were committed before the fence arrived.
#include <set>

#include "actors/shard/apply_policy.hpp"
#include "actors/shard/round_buffer.hpp"

namespace leeway {

class ApplyFirstPushes final : public ApplyPolicy {
 public:
  /// `size`: pushes that close a round. `leads`: this shard proposes, after a timer with `token`
  /// if a round has a grace window.
  ApplyFirstPushes(RoundSize size, GraceWindow grace, bool leads, TimerToken token,
                   ClockTable& clocks, PushSink& sink, Channel& scheduler)
      : size_(size),
        grace_(std::move(grace)),
        leads_(leads),
        token_(token),
        clocks_(clocks),
        sink_(sink),
        scheduler_(scheduler) {}

  std::optional<WorkerId> take(Contribution push, Outbox& out) override;
  /// All shards have closed the same rounds, so they report different clocks only if one of them
  /// lacks a push of a closed round.
  Progress fence(WorkerId worker) override;
  void remove(WorkerId worker) override { settle(worker); }
  std::optional<WorkerId> release(WorkerId, Outbox& out) override { return apply_closed(out); }
  void propose(Outbox& out) override;
  void on_timer(Outbox& out) override;
  void end_grace(Outbox& out) override;
  bool close(const msg::CloseRound& order) override;
  std::optional<WorkerId> apply_closed(Outbox& out) override;
  msg::RoundState save() const override;
  void restore(const msg::RoundState& state) override;

 private:
  /// An iteration that a worker has pushed whole, in the open round.
  using WholePush = msg::RoundState::Whole;
  /// A round that is closed, while pushes of contributors are on their way.
  struct Closing {
    Iteration round;
    std::vector<WorkerId> contributors;  // ascending
    std::set<WorkerId> missing;          // contributors whose pushes are not whole here
    double scale = 1;                    // see msg::CloseRound

    bool is_contributor(WorkerId worker) const;
  };
  struct Proposal {
    Iteration round{-1};
    View view;
    std::size_t contributors = 0;
    bool operator==(const Proposal&) const = default;
  };

  /// A round that has enough pushes, and waits for more.
  struct Gathering {
    Iteration round{-1};
    Instant quorum_at;
  };

  bool is_enough(std::size_t empty) const;
  /// Whether the open round, which has enough pushes, waits for more. Then sets a timer.
  bool wait_for_more(Outbox& out);
  /// The live workers that have not pushed the open round, with samples or without.
  std::size_t missing() const;
  void advance_clocks(const Closing& closed, Outbox& out);
  Clock settle(WorkerId worker);

  RoundSize size_;
  GraceWindow grace_;
  bool leads_;
  TimerToken token_;
  ClockTable& clocks_;
  PushSink& sink_;
  Channel& scheduler_;
  RoundBuffer held_;
  std::vector<WholePush> whole_;  // in order of arrival
  std::optional<Closing> closing_;
  Proposal proposed_;              // the latest
  std::optional<Instant> opened_;  // the open round; empty: not known
  Gathering gathering_;            // the latest
  std::optional<Instant> timer_;   // when the earliest timer fires; empty: no timer runs
  bool grace_ended_ = false;       // see msg::EndGrace
};

}  // namespace leeway
