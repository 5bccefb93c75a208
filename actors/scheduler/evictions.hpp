#pragma once
// Evictions: fences members that have ended, and collects what the shards have of their pushes
// (docs/staleness.md, "Who takes part").
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

  /// The worker, or an incarnation of it, has ended: its member is fenced. False if the member has
  /// stopped, or is out already.
  bool evict(WorkerId worker, const std::string& reason, Outbox& out);
  /// A shard's answer. With the last one, what the shards have of the member's iterations.
  std::optional<PartialIterations> fenced(ShardId shard, const msg::Fenced& answer);

 private:
  using State = Member::State;

  std::shared_ptr<const Stages> stages_;
  Roster& roster_;
  const Mailer& mailer_;
};

}  // namespace leeway
