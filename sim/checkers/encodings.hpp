#pragma once
// EncodingChecker: property 7, an encoded push and the residual after it have all that the gradient
// and the residual before it had. The last push of a lease that flushes is not encoded, and a shard
// reports whose residuals a checkpoint lacks.
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "actors/job.hpp"
#include "sim/checkers/checker.hpp"

namespace leeway::sim {

/// Compares checked_sum() over the values of each block. Decodes the pushes itself, and follows the
/// residual of each worker from push to push, so a worker that forgets its residual is found too.
class EncodingChecker final : public Checker {
 public:
  explicit EncodingChecker(std::shared_ptr<const Job> job)
      : Checker("decoded gradient plus residual equals the gradient (7)"), job_(std::move(job)) {}
  void on_event(Instant, Address actor, const Event& event) override;
  void on_sent(Instant, const Letter& letter) override;
  void on_delivered(Instant, const Letter& letter) override;
  void on_ended(Instant, Address actor) override;

 private:
  using Key = std::tuple<WorkerId, Iteration, BlockId>;
  struct Encoded {
    double before;  // residual
    event::GradientEncoded event;
  };

  /// The sum of the gradient that block `index` of the push carries, without the slices that it
  /// assigns.
  double sum_of_gradient(const msg::Push& push, std::size_t index) const;
  void forget_added(WorkerId worker);
  void enter_session(WorkerId worker, Session session);
  void sent_to_scheduler(const Letter& letter);
  void check_flushed(WorkerId worker, Session session, const msg::Push& push) const;
  /// The last push of the lease carries the residual in full.
  void note_flushing(WorkerId lead, Session session, const msg::Lease& lease);
  /// Requires the ends of a checkpoint.
  void check_reported(ShardId shard, const msg::Stored& stored) const;

  std::shared_ptr<const Job> job_;
  std::map<std::pair<WorkerId, BlockId>, double> residuals_;
  std::map<Key, Encoded> unsent_;
  /// Of pushes that may be dropped and are not acknowledged: what they have added to the residual.
  std::map<Key, double> added_;
  std::map<WorkerId, Session> sessions_;  // that the workers have begun last
  // Of the checkpoint that was proposed last: its number, and by pipeline the end of its
  // iterations.
  std::uint64_t checkpoint_ = 0;
  std::vector<Iteration> ends_;
  /// Residuals after pushes that were not dropped, by iteration.
  std::map<std::pair<WorkerId, BlockId>, std::map<Iteration, double>> history_;
  struct Flushing {
    Session session;
    std::set<Iteration> iterations;
  };
  std::map<WorkerId, Flushing> flushing_;  // by lead: iterations of its last session that flush
  std::set<WorkerId> evicted_;             // leads
};

}  // namespace leeway::sim
