#pragma once
// LeaseBook: which samples of which epoch have been leased to whom, trained, or given back.
//
// A lease names positions of an epoch's permutation and the iterations that they fill, so the book
// knows which samples went into which iteration without being told. Each sample of an epoch is
// trained exactly once, by each part of the model: what a dead worker has not finished everywhere
// goes back and is leased again, samples of partial iterations with the list of the parts that have
// them already. For the book a pipeline is a worker, named by its lead.
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "actors/scheduler/partial_iterations.hpp"
#include "core/fifo.hpp"
#include "core/ids.hpp"
#include "messages/worker_scheduler.hpp"
#include "policies/balance/balance.hpp"

namespace leeway {

/// Positions [begin, end) of an epoch's permutation.
struct SampleRange {
  Epoch epoch;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t count() const { return end - begin; }
  bool operator==(const SampleRange&) const = default;
};

class LeaseBook {
 public:
  /// A part of a round that was closed without it.
  struct DroppedShare {
    WorkerId worker;
    SampleRange samples;
    bool operator==(const DroppedShare&) const = default;
  };
  /// What becomes of the leases of one who is gone.
  struct TakenBack {
    std::vector<SampleRange> back;     // to be leased again
    std::vector<SampleRange> trained;  // news: partial iterations of which nothing is missing
  };
  struct Limits {
    std::int64_t data_size = 0;          // samples of an epoch
    std::int64_t total_samples = 0;      // to train over the whole run; 0: no limit
    std::uint64_t total_iterations = 0;  // of all workers together; 0: no limit
    std::uint32_t batch = 1;
    std::uint32_t chunk = 1;  // samples of a lease, at most, for one who has the batch
    bool by_rounds = false;   // bsp: a lease is one worker's part of a round
    std::uint32_t spare = 0;  // backup: workers that a round does not wait for
  };
  /// Without a balance, every worker has the batch.
  explicit LeaseBook(const Limits& limits, std::shared_ptr<Balance> balance = nullptr)
      : limits_(limits), balance_(std::move(balance)) {}

  /// A lease for the worker's iterations from `next` on; none when there is nothing to lease now,
  /// or, by rounds, when `next` is not the worker's next round. `live` are the workers that take
  /// part, in order, the asking one among them. A repeated request gets the same answer.
  std::optional<msg::Lease> grant(WorkerId worker, Iteration next,
                                  const std::vector<WorkerId>& live);

  /// Iterations of the worker below `clock` are trained. Returns their samples as far as that is
  /// news.
  std::vector<SampleRange> confirm(WorkerId worker, Clock clock);

  /// The worker is gone, or idle; confirm() has been told what it has trained. All else that it was
  /// leased, and its parts of rounds to come, go back: samples that parts have, by `partial` or by
  /// an earlier lease, with the list of these. What all parts have is trained.
  TakenBack take_back(WorkerId worker, const PartialIterations& partial = {});

  /// Backup: true when the contributors' pushes make a round. Of a short one, in which few of the
  /// `live` have samples, all must be there: else its last samples would take many rounds.
  bool suffice(Iteration round, const std::vector<WorkerId>& contributors,
               const std::vector<WorkerId>& live) const;
  /// Backup: the round is closed with the contributors' pushes. The parts of all others go back.
  std::vector<DroppedShare> close(Iteration round, const std::vector<WorkerId>& contributors);
  /// Backup: true while others than `worker` have samples in rounds that are not closed yet: they
  /// may come back.
  bool may_come_back(WorkerId worker) const;

  /// The worker starts at `iteration`: its parts of earlier rounds go back.
  void skip_to(WorkerId worker, Iteration iteration);

  bool anything_to_lease() const;
  /// As many iterations are leased, or trained, as the run may have. False without such a limit.
  bool at_last_iteration() const {
    return limits_.total_iterations > 0 && iterations_granted_ >= limits_.total_iterations;
  }
  /// True when every sample to train has been.
  bool all_trained() const;
  std::uint64_t samples_trained() const { return samples_trained_; }
  /// Samples leased, those that came back not counted.
  std::uint64_t samples_leased() const { return samples_leased_; }
  Epoch epoch() const { return Epoch(fresh_ / limits_.data_size); }
  /// First iteration that no lease reaches, over all workers.
  Iteration horizon() const { return horizon_; }

 private:
  struct Grant {
    msg::Lease lease;
    std::int64_t trained = 0;  // samples from its begin
  };
  /// To be leased again. A lease is never of more than one of these, so its iterations have its
  /// samples alone and its list is theirs.
  struct Returned {
    SampleRange samples;
    AppliedBuckets applied;
  };

  std::optional<msg::Lease> grant_chunk(WorkerId worker, Iteration next,
                                        const std::vector<WorkerId>& live);
  bool open_round(Iteration round, const std::vector<WorkerId>& live);
  /// Up to `count` contiguous samples: given back ones first, then fresh ones. Empty range when
  /// there are none, or (with `only`) none of that epoch.
  Returned take(std::int64_t count, std::optional<Epoch> only);
  std::int64_t fresh_left() const;
  /// Samples of an iteration of each.
  std::vector<std::uint32_t> batches(const std::vector<WorkerId>& live) const;
  /// What is left of a lease from `begin` on, partial iteration by partial iteration.
  void take_back(const msg::Lease& lease, std::int64_t begin, const PartialIterations& partial,
                 TakenBack& all);
  /// Positions [begin, end) of a lease, which the parts of the list have.
  SampleRange give_back(const msg::Lease& lease, std::int64_t begin, std::int64_t end,
                        AppliedBuckets applied);
  SampleRange give_back(const msg::Lease& lease) {
    return give_back(lease, lease.begin, lease.end, lease.applied);
  }
  msg::Lease lease_of(Returned taken, Iteration first, std::uint32_t batch,
                      std::uint32_t round_samples);
  /// Of one round of so many workers: what weights of pushes are shares of, so not less than the
  /// `largest` batch in it.
  std::uint32_t round_samples(std::size_t live, std::uint32_t largest) const;

  Limits limits_;
  std::shared_ptr<Balance> balance_;
  std::deque<Returned> returned_;
  std::int64_t fresh_ = 0;  // samples handed out for the first time, over all epochs
  std::uint64_t iterations_granted_ = 0;
  std::uint64_t next_lease_ = 1;
  std::map<WorkerId, Fifo<Grant>> grants_;
  std::map<WorkerId, Fifo<msg::Lease>> shares_;  // by rounds: cut, not yet asked for
  Iteration next_round_;
  Iteration first_open_;                                 // backup: first round that is not closed
  std::map<Iteration, std::size_t> round_contributors_;  // of each open round, how many suffice
  std::set<WorkerId> late_;  // backup: late, and not in time with samples since
  Iteration horizon_;
  std::uint64_t samples_trained_ = 0;
  std::uint64_t samples_leased_ = 0;
};

}  // namespace leeway
