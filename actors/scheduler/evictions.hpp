#pragma once
// Evictions: fences members that have ended, and collects the pushes that the shards have of them
// (docs/staleness.md, "Membership").
#include <memory>
#include <optional>
#include <string>

#include "actors/scheduler/mailer.hpp"
#include "messages/scheduler_shard.hpp"

namespace leeway {

class Evictions {
 public:
  Evictions(const Job& job, Roster& roster, const Mailer& mailer)
      : stages_(job.stages), roster_(roster), mailer_(mailer) {}

  /// Fences the member of a worker that has ended. False if the member has stopped or is evicted
  /// already. `rejoined`: the worker joins again, and its host has not reported an end.
  bool evict(WorkerId worker, const std::string& reason, bool rejoined, Outbox& out);
  /// Records a shard's answer. Returns the member's partial iterations with the last answer.
  std::optional<PartialIterations> fenced(ShardId shard, const msg::Fenced& answer);

 private:
  using State = Member::State;

  std::shared_ptr<const Stages> stages_;
  Roster& roster_;
  const Mailer& mailer_;
};

}  // namespace leeway
