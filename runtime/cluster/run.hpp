#pragma once
// ClusterRun: a run whose shards and workers are on node agents, while scheduler and monitor stay
// in this process.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/job.hpp"
#include "cluster/driver.hpp"
#include "runtime/cluster/options.hpp"
#include "runtime/interrupt.hpp"

namespace leeway {

class ClusterRun {
 public:
  /// What the nodes are told is told to `say`. The error says what to change.
  static Expected<std::unique_ptr<ClusterRun>> open(const Plan& plan, const ClusterOptions& options,
                                                    bool trace,
                                                    std::function<void(const std::string&)> say);

  /// Whether an actor is in this process.
  bool is_here(Address actor) const;
  /// Whether the nodes can host the job, and have its data; see Driver::prepare.
  Status prepare(const Job& job);
  /// Runs until `ended`, which waits a little for it. The error says why it could not begin, or
  /// broke off.
  Status run(const std::shared_ptr<const Job>& job, const std::vector<Audience*>& audience,
             std::function<void(Address, Instant, const Event&)> on_event,
             const std::function<bool()>& ended);
  bool began() const { return began_; }
  bool interrupted() const { return guard_.interrupted(); }
  /// Of a run that failed, when this program stood still for so long that nodes gave it up: that
  /// it did, for the end of an error; else empty.
  std::string standstill() const;

 private:
  ClusterRun() = default;
  const InterruptGuard guard_;
  std::unique_ptr<Driver> driver_;
  bool began_ = false;
  Duration stood_still_{};  // the longest
};

}  // namespace leeway
