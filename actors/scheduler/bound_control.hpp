#pragma once
// BoundControl: moves the staleness bound within its range, by the waiting times that members
// report. Does nothing if the consistency policy has a fixed bound.
#include <cstdint>
#include <map>
#include <optional>

#include "actors/scheduler/mailer.hpp"
#include "checkpoint/values.hpp"
#include "policies/consistency/adaptive.hpp"

namespace leeway {

class BoundControl {
 public:
  BoundControl(const Job& job, const Roster& roster, const Mailer& mailer);

  /// Records a member's times since its last request. When all running members have reported
  /// iterations since the last decision, decides again and sends a changed bound to the shards.
  void measured(WorkerId lead, const msg::WantLease& want, Outbox& out);
  /// Discards the times of a member that no longer takes part.
  void forget(WorkerId lead) { interval_.erase(lead); }
  /// For a checkpoint; empty if the bound is fixed.
  checkpoint::Bound state() const;
  /// The last decision; 0 if the bound is fixed.
  std::uint32_t bound() const { return static_cast<std::uint32_t>(bound_ ? bound_->bound() : 0); }

 private:
  void decide(Outbox& out);

  const Roster& roster_;
  const Mailer& mailer_;
  std::optional<AdaptiveBound> bound_;
  std::map<WorkerId, WorkerTime> interval_;  // since the last decision
};

}  // namespace leeway
