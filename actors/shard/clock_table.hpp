#pragma once
// ClockTable: the workers that take part at one shard, and the clock of each.
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "core/ids.hpp"
#include "messages/shard_state.hpp"

namespace leeway {

/// clock(w) counts the iterations of worker w that the shard has finished: normally those that w
/// has pushed whole, and under backup and quorum those whose round is closed. min_clock is the
/// least clock of the live participants; with no live participant it keeps its last value. Neither
/// ever decreases. accept() only records the buckets of an iteration; the ApplyPolicy decides when
/// the clock advances.
class ClockTable {
 public:
  struct Participant {
    Session session;
    bool live = false;    // counts in min_clock
    bool fenced = false;  // no further push of this session is accepted
    Clock clock;
    std::vector<bool> accepted;  // the buckets of iteration `clock`; may be empty before the first
    std::uint32_t buckets_accepted = 0;
    Iteration next_unseen;  // since its admission: largest iteration with a bucket, plus one; or 0
    /// Of rounds that can drop pushes: the last ones that were closed with its push.
    std::vector<Iteration> contributed;
  };

  ClockTable() = default;
  ClockTable(const ClockTable&) = delete;
  ClockTable& operator=(const ClockTable&) = delete;

  enum class Verdict { accepted, repeat, gap };

  /// Records the scheduler's view of the membership. False for a view older than the latest.
  bool enter_view(View view);
  View view() const { return view_; }

  msg::ClockTableState save() const;
  /// Replaces everything by a saved state.
  void restore(const msg::ClockTableState& state);

  /// Continues a run in which no worker is behind `least`. Call before anything else.
  void resume(Clock least) { min_clock_ = max_clock_ = least; }
  /// Inserts or re-inserts the worker as live, at max(iteration, min_clock, its own last clock).
  /// Returns that clock.
  Clock admit(WorkerId worker, Session session, Iteration iteration);
  /// Moves a live worker that has pushed nothing since its admission up to `iteration`.
  void raise(WorkerId worker, Iteration iteration);
  /// Accepts no further push of the worker's session, which still counts in min_clock.
  void fence(WorkerId worker);
  /// Takes the worker out of min_clock.
  void remove(WorkerId worker);

  /// Accepts a bucket of the iteration that equals the worker's clock, once. A bucket that was
  /// accepted before is a repeat, a bucket of a later iteration a gap. Requires
  /// may_push(worker, session).
  Verdict accept(WorkerId worker, Iteration iteration, std::uint32_t bucket,
                 std::uint32_t bucket_count);
  /// True when all buckets of the iteration have been accepted, or the clock has passed it.
  bool is_whole(WorkerId worker, Iteration iteration) const;
  /// Moves the worker's clock to the next iteration, of which no bucket is accepted yet.
  void advance(WorkerId worker);
  /// The same if all buckets of the worker's iteration have been accepted. True if they have.
  bool advance_if_whole(WorkerId worker);
  /// The round was closed with the worker's push.
  void contributed(WorkerId worker, Iteration round);
  /// Whether the round was. Requires a worker that was admitted and may still repeat its push.
  bool has_contributed(WorkerId worker, Iteration round) const;
  /// True for the session that was admitted, as long as it is live and not fenced.
  bool may_push(WorkerId worker, Session session) const;

  /// Null for a worker that was never admitted.
  const Participant* find(WorkerId worker) const;
  /// Live participants at min_clock that are not fenced.
  std::size_t at_min_clock() const;
  Clock min_clock() const { return min_clock_; }
  Clock max_clock() const { return max_clock_; }
  /// The largest clock - min_clock of a live participant that has just pushed an iteration. One
  /// that is admitted ahead of the others does not count: it has not run ahead.
  std::int64_t max_clock_gap() const { return max_clock_gap_; }
  const std::map<WorkerId, Participant>& participants() const { return participants_; }

 private:
  static bool is_whole(const Participant& participant) {
    return participant.buckets_accepted > 0 &&
           participant.buckets_accepted == participant.accepted.size();
  }
  Participant& entry_of(WorkerId worker);
  void set(Participant& participant, Clock clock, bool live);

  View view_;
  std::map<WorkerId, Participant> participants_;
  std::vector<Participant*> by_index_;      // the same; null for a worker that was never admitted
  std::map<Clock, std::uint32_t> live_at_;  // number of live participants by clock
  std::set<WorkerId> fenced_;               // live, but fenced
  Clock min_clock_;
  Clock max_clock_;
  std::int64_t max_clock_gap_ = 0;
};

}  // namespace leeway
