#pragma once
// BoundControl: moves the staleness bound within its range, by how long the members report to have
// waited. Does nothing where the consistency policy has one bound.
#include <cstdint>
#include <map>
#include <optional>

#include "actors/scheduler/mailer.hpp"
#include "policies/consistency/adaptive.hpp"

namespace leeway {

class BoundControl {
 public:
  BoundControl(const Job& job, const Roster& roster, const Mailer& mailer);

  /// Takes in a member's times since its last request. Once all running members have reported
  /// iterations since the last decision, decides anew and sends the shards a bound that differs.
  void measured(WorkerId lead, const msg::WantLease& want, Outbox& out);
  /// The member takes part no longer.
  void forget(WorkerId lead) { interval_.erase(lead); }
  /// The last decision; 0 where the bound is fixed.
  std::uint32_t bound() const { return static_cast<std::uint32_t>(bound_ ? bound_->bound() : 0); }

 private:
  void decide(Outbox& out);

  const Roster& roster_;
  const Mailer& mailer_;
  std::optional<AdaptiveBound> bound_;
  std::map<WorkerId, WorkerTime> interval_;  // since the last decision
};

}  // namespace leeway
