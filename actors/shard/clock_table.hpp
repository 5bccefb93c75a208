#pragma once
// ClockTable: who takes part at one shard, and how far each has come.
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/ids.hpp"

namespace leeway {

/// The clocks of the participants at one shard. clock(w) counts the iterations of w whose push the
/// shard has whole; min_clock is the least clock of those that are live, and over nobody keeps its
/// last value. Neither ever decreases. Where late pushes are dropped, an iteration counts when its
/// round is closed, with the worker's push or without it: close() moves clocks, and accept() none.
class ClockTable {
 public:
  struct Participant {
    Incarnation incarnation;
    bool live = false;    // counts in the minimum
    bool fenced = false;  // nothing more is accepted of this incarnation
    Clock clock;
    std::vector<bool> parts;  // of iteration `clock`: those accepted
    std::uint32_t buckets_accepted = 0;
  };

  ClockTable(const ClockTable&) = delete;
  ClockTable& operator=(const ClockTable&) = delete;

  enum class Verdict { accepted, repeat, gap };

  explicit ClockTable(bool drops_stragglers = false) : drops_stragglers_(drops_stragglers) {}

  /// Inserts or re-inserts the worker at max(iteration, min_clock, its own last clock), live.
  /// Returns where it stands.
  Clock admit(WorkerId worker, Incarnation incarnation, Iteration iteration);
  /// Moves a live worker that has pushed nothing since its admission up to `iteration`.
  void raise(WorkerId worker, Iteration iteration);
  /// The iteration that the worker stands at is done with: it stands at the next.
  void close(WorkerId worker);
  /// Accepts nothing more of the worker's incarnation; it goes on counting in the minimum.
  void fence(WorkerId worker);
  /// Takes the worker out of the minimum.
  void remove(WorkerId worker);

  /// Takes a part of an iteration if it is the next: its iteration equals the worker's clock and
  /// its bit is clear. A part taken before is a repeat; one of a later iteration a gap. Requires
  /// may_push(worker, incarnation).
  Verdict accept(WorkerId worker, Iteration iteration, std::uint32_t part,
                 std::uint32_t bucket_count);
  /// True when all parts of the iteration have been accepted, or it is done with.
  bool whole(WorkerId worker, Iteration iteration) const;
  /// True for the live, unfenced incarnation that was admitted.
  bool may_push(WorkerId worker, Incarnation incarnation) const;

  /// Null for a worker that was never admitted.
  const Participant* find(WorkerId worker) const;
  /// Live participants at min_clock that are not fenced.
  std::size_t at_min_clock() const;
  Clock min_clock() const { return min_clock_; }
  Clock max_clock() const { return max_clock_; }
  /// Largest iteration of which a part was accepted, plus one; 0 before the first.
  Iteration next_unseen() const { return next_unseen_; }
  /// clock - min_clock, largest ever seen over live participants.
  std::int64_t max_clock_gap() const { return max_clock_gap_; }
  const std::map<WorkerId, Participant>& participants() const { return participants_; }

 private:
  /// Moves a participant's clock, and whether it counts in the minimum.
  void set(Participant& participant, Clock clock, bool live);

  bool drops_stragglers_;
  std::map<WorkerId, Participant> participants_;
  std::vector<Participant*> by_index_;      // those; null for a worker that was never admitted
  std::map<Clock, std::uint32_t> live_at_;  // how many live participants stand at a clock
  std::set<WorkerId> fenced_;               // live, but fenced
  Clock min_clock_;
  Clock max_clock_;
  Iteration next_unseen_;
  std::int64_t max_clock_gap_ = 0;
};

}  // namespace leeway
