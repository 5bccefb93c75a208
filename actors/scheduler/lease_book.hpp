#pragma once
// LeaseBook: the samples of each epoch that are leased to workers, trained, or returned.
//
// A lease names positions of an epoch's permutation and the iterations that they fill. So the book
// knows the samples of each iteration without a report. Each sample of an epoch is trained exactly
// once, by each stage of the model. Samples that a dead worker has not finished on all shards are
// leased again. Samples of partial iterations have a list of the buckets that have their gradients.
// For the book a pipeline is one worker, named by its lead.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "actors/scheduler/partial_iterations.hpp"
#include "actors/scheduler/sample_supply.hpp"
#include "core/fifo.hpp"
#include "core/ids.hpp"
#include "messages/worker_scheduler.hpp"
#include "policies/balance/balance.hpp"
#include "policies/consistency/round_size.hpp"

namespace leeway {

class LeaseBook {
 public:
  /// A share whose push is not part of its closed round.
  struct DroppedShare {
    WorkerId worker;
    SampleRange samples;
    bool operator==(const DroppedShare&) const = default;
  };
  struct FollowedSnapshot {
    std::map<WorkerId, Iteration> ends;
    SampleSupply supply;  // without the samples of iterations below their ends
  };
  /// The samples of a worker's leases that were not trained, when the leases end.
  struct TakenBack {
    std::vector<SampleRange> back;     // to be leased again
    std::vector<SampleRange> trained;  // newly: partial iterations that lack no bucket
  };
  struct Limits {
    std::int64_t data_size = 0;          // samples of an epoch
    std::int64_t total_samples = 0;      // to train over the whole run; 0: no limit
    std::uint64_t total_iterations = 0;  // of all workers together; 0: no limit
    std::uint32_t batch = 1;
    std::uint32_t lease_size = 1;  // samples of a lease at most, for a worker that has the batch
    bool by_rounds = false;        // a lease is a worker's share of one round
    RoundSize round_size;          // by rounds: pushes that close a round
    bool equal_pushes = false;     // each counts as a whole batch, whatever its samples
    /// The workers' own samples, as in SampleSupply::Limits: data share s is that of the worker
    /// s * workers_per_share.
    std::vector<std::int64_t> data_shares;
    std::uint32_t workers_per_share = 1;  // the stages of a pipeline
    double participation = 1;             // by rounds: share of the workers that get samples
    std::uint64_t seed = 0;               // of their draws
  };
  /// Without a balance, every worker has the batch.
  explicit LeaseBook(const Limits& limits, std::shared_ptr<Balance> balance = nullptr)
      : limits_(limits), balance_(std::move(balance)), supply_(supply_limits()) {}

  /// A lease for the worker's iterations from `next` on; empty without samples to lease, or, by
  /// rounds, if `next` is not the worker's next round. `live`: the workers that take part, in
  /// order, including this worker. A repeated request gets the same answer.
  std::optional<msg::Lease> grant(WorkerId worker, Iteration next,
                                  const std::vector<WorkerId>& live);

  /// Marks the worker's iterations below `clock` as trained. Returns the newly trained samples.
  std::vector<SampleRange> confirm(WorkerId worker, Clock clock);

  /// Takes back the rest of the leases, and the shares of later rounds, of a worker that is gone or
  /// idle. Requires that confirm() has its clock. Samples whose gradients some buckets have, by
  /// `partial` or by an earlier lease, go back with the list of these buckets. Samples that no
  /// bucket lacks count as trained.
  TakenBack take_back(WorkerId worker, const PartialIterations& partial = {});

  /// For rounds that drop pushes: true when the contributors' pushes can close a round. If only a
  /// few of the `live` workers have samples in it, all of these must contribute. Otherwise the last
  /// samples of an epoch would take many rounds.
  bool suffice(Iteration round, const std::vector<WorkerId>& contributors,
               const std::vector<WorkerId>& live) const;
  /// The factor of the weights of these pushes. After it, they add up to the share that their
  /// samples are of the batches that a round needs, and to 1 if they have more.
  double scale(Iteration round, const std::vector<WorkerId>& contributors) const;
  /// Closes a round with the contributors' pushes. All other shares go back.
  std::vector<DroppedShare> close(Iteration round, const std::vector<WorkerId>& contributors);
  /// For rounds that drop pushes: true while workers other than `worker` have samples in open
  /// rounds, which may come back.
  bool may_come_back(WorkerId worker) const;

  /// The worker starts at `iteration`: its shares of earlier rounds go back.
  void skip_to(WorkerId worker, Iteration iteration);

  // ---- checkpoints ----

  /// Begins to follow a snapshot that holds the iterations of each worker below `ends`, which no
  /// lease has reached yet.
  void follow_snapshot(std::map<WorkerId, Iteration> ends);
  /// The worker is admitted at `iteration`: its iterations from there on are not in the snapshot.
  void admitted(WorkerId worker, Iteration iteration);
  /// Ends the following. The supply has the samples that the snapshot lacks: a run that continues
  /// from it leases them. Requires that the clocks of all workers with leases have reached their
  /// ends.
  std::optional<FollowedSnapshot> end_snapshot();
  /// The samples that are not leased.
  const SampleSupply& supply() const { return supply_; }
  /// Continues a run: no iteration below `first` is leased, and the supply's samples are left.
  void resume(SampleSupply::State supply, Iteration first);

  bool anything_to_lease() const { return supply_.has_any(); }
  /// The same for workers that do not take part, when the `live` workers do.
  bool anything_for_others(const std::vector<WorkerId>& live) const {
    return limits_.data_shares.empty() ? anything_to_lease()
                                       : supply_.has_any(data_shares_without(live));
  }
  /// True if all iterations of the run's limit are leased or trained. False without a limit.
  bool at_last_iteration() const { return supply_.at_last_iteration(); }
  /// True when every sample of the run is trained.
  bool all_trained() const;
  std::uint64_t samples_trained() const { return data_.samples_trained; }
  /// Samples leased, without those that came back.
  std::uint64_t samples_leased() const { return supply_.samples_leased(); }
  /// The same for iterations with samples, of all workers.
  std::uint64_t iterations_leased() const { return supply_.state().iterations_leased; }
  /// True if some buckets have the gradients of a sample that came back.
  bool has_partial() const { return supply_.has_partial(); }
  Epoch epoch() const { return supply_.epoch(); }
  /// The first iteration that no lease reaches, over all workers.
  Iteration horizon() const { return data_.horizon; }
  /// The first iteration of the worker that none of its leases reaches; 0 without a lease since its
  /// leases were taken back.
  Iteration horizon(WorkerId worker) const;

 private:
  SampleSupply::Limits supply_limits() const {
    return {limits_.data_size, limits_.data_shares, limits_.total_samples,
            limits_.total_iterations};
  }
  /// The data shares of which the worker gets samples: its own, then those without a worker.
  std::vector<std::uint32_t> data_shares_of(WorkerId worker,
                                            std::vector<std::uint32_t> without) const;
  /// The data shares of workers that do not take part.
  std::vector<std::uint32_t> data_shares_without(const std::vector<WorkerId>& live) const;
  /// Whether each of the live workers gets samples in a round.
  std::vector<bool> drawn(Iteration round, const std::vector<WorkerId>& live,
                          const std::vector<std::uint32_t>& without) const;
  std::size_t participants(std::size_t live) const;
  struct Grant {
    msg::Lease lease;
    std::int64_t trained = 0;  // samples from its begin
  };

  /// Takes back positions [begin, end) of a lease or share; the buckets of the list have their
  /// gradients.
  SampleRange give_back(WorkerId worker, const msg::Lease& lease, std::int64_t begin,
                        std::int64_t end, AppliedBuckets applied);
  SampleRange give_back(WorkerId worker, const msg::Lease& lease) {
    return give_back(worker, lease, lease.begin, lease.end, lease.applied);
  }
  std::optional<msg::Lease> lease_on_request(WorkerId worker, Iteration next,
                                             const std::vector<WorkerId>& live);
  /// The number of samples to lease at once to a worker with this batch.
  std::int64_t lease_size(std::int64_t batch, std::int64_t live) const;
  /// Divides the next samples into a round's shares. False without samples.
  bool open_round(Iteration round, const std::vector<WorkerId>& live);
  /// The samples of an iteration of each worker.
  std::vector<std::uint32_t> batches(const std::vector<WorkerId>& live) const;
  /// The samples of a round of `live` workers. A push's weight is its share of these. Not less than
  /// the `largest` batch of the round.
  std::uint32_t round_samples(std::size_t live, std::uint32_t largest) const;
  /// The rest of a lease from `begin` on, partial iteration by partial iteration.
  void take_back(WorkerId worker, const msg::Lease& lease, std::int64_t begin,
                 const PartialIterations& partial, TakenBack& all);
  /// Calls visit(worker, lease) for each lease and each share that is not requested yet.
  template <class Visit>
  void for_each_lease(Visit visit) const;
  struct Shares {
    std::size_t count = 0;  // with samples
    std::int64_t samples = 0;
  };
  /// The shares of a round of the workers `of`, in ascending order.
  Shares shares(const std::vector<WorkerId>& of, Iteration round) const;

  struct OpenRound {
    std::size_t contributors = 0;  // pushes that close the round
    std::uint32_t samples = 0;     // as in its leases
  };
  /// The mutable state, except the supply.
  struct Data {
    std::map<WorkerId, Fifo<Grant>> grants;
    std::map<WorkerId, Fifo<msg::Lease>> shares;  // by rounds: not requested yet
    Iteration next_round;
    Iteration first_open;  // for rounds that drop pushes: the first that is not closed
    std::map<Iteration, OpenRound> open_rounds;  // for rounds that drop pushes
    std::set<WorkerId> stragglers;  // dropped, and without a contribution with samples since
    Iteration horizon;
    std::map<WorkerId, Iteration> horizons;
    std::uint64_t samples_trained = 0;
  };

  Limits limits_;
  std::shared_ptr<Balance> balance_;
  SampleSupply supply_;
  std::optional<FollowedSnapshot> snapshot_;
  Data data_;
};

}  // namespace leeway
