#pragma once
// GroupFollower: a worker of a host group that computes its part of each iteration's samples, and
// sends the gradients to the group's lead.
//
// It leases no samples, and neither pulls nor pushes: the lead sends it positions and weights. The
// lead also says when there are no further iterations, so that the follower is idle or stops.
#include <memory>

#include "actors/worker/compute_work.hpp"
#include "actors/worker/participant.hpp"

namespace leeway {

class GroupFollower final : public Participant {
 public:
  GroupFollower(std::shared_ptr<const Job> job, WorkerId id, std::uint32_t launch = 1);

  void warm_up() override;
  void on_part(Work& work, int part, Outbox& out) override;
  void on_link(Address peer, Outbox& out) override;

 private:
  void started(const msg::Start& start, Outbox& out) override;
  void advance(Outbox& out) override;
  void forget() override;
  /// It pushes nothing, so the clock of the group is that of its lead.
  Clock acknowledged() const override;
  bool take(Address from, Envelope& envelope, Outbox& out) override;

  void handle(Address from, msg::GroupShare& share, Outbox& out);
  void handle(Address from, const msg::GroupEnd& end, Outbox& out);
  void send_gradients(int part, Outbox& out);
  void finish(Outbox& out);

  Address lead() const { return address_of(job_->stages->lead_of(id_)); }

  std::shared_ptr<ComputeWork> work_;  // of iteration_; null: none
  Iteration iteration_;                // the latest one with samples
  Iteration next_;                     // the first iteration that may come
  bool ended_ = false;                 // no further iterations come
  Instant waiting_since_, computing_since_;
};

}  // namespace leeway
