#pragma once
// PushSink: the interface through which an ApplyPolicy applies, drops or discards pushes.
#include <vector>

#include "actors/outbox.hpp"
#include "actors/shard/contribution.hpp"

namespace leeway {

class PushSink {
 public:
  virtual ~PushSink() = default;
  /// Applies contributions to one bucket, in ascending order of their workers, as one update. An
  /// empty push is acknowledged at once, any other push when the update has been computed.
  virtual void apply(std::vector<Contribution> contributions, Outbox& out) = 0;
  /// All updates of a round have been handed to apply().
  virtual void end_round(Iteration /*round*/, Outbox&) {}
  /// Acknowledges a push that is not applied, so that its worker can discard it.
  virtual void drop(const Contribution& contribution, Outbox& out) = 0;
  /// Discards the push of a worker that no longer waits for an acknowledgement.
  virtual void forget(const Contribution& contribution) = 0;
};

}  // namespace leeway
