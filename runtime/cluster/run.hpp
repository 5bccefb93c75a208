#pragma once
// ClusterRun: a run with its shards and workers on node agents, and scheduler and monitor in this
// process.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/job.hpp"
#include "cluster/driver.hpp"
#include "runtime/attend.hpp"
#include "runtime/cluster/options.hpp"
#include "runtime/interrupt.hpp"

namespace leeway {

struct RunOptions;

class ClusterRun {
 public:
  /// Connects to the nodes. Calls `say` with progress for the user. The error says what to change.
  static Expected<std::unique_ptr<ClusterRun>> open(const Plan& plan, const RunOptions& options,
                                                    std::function<void(const std::string&)> say);

  /// Whether an actor is in this process.
  bool is_here(Address actor) const;
  /// The plan as the nodes get it.
  const Plan& plan() const { return driver_->plan(); }
  /// Checks that the nodes can host the job, and sends missing data; see Driver::prepare.
  Status prepare(const Job& job);
  /// Runs until `ended`, which blocks for a short time, returns true, or until `stop`. `page`: for
  /// nodes that serve it; may be empty.
  /// The error says why the run could not start or why it failed.
  Status run(const std::shared_ptr<const Job>& job, const std::vector<Audience*>& audience,
             ActorObservers observers, const std::function<bool()>& ended, StopRequest stop,
             Driver::Page page);
  bool began() const { return began_; }
  bool interrupted() const { return guard_.interrupted(); }
  /// The end of an error text, if this program was suspended for so long that nodes gave it up;
  /// otherwise empty.
  std::string pause_text() const;

 private:
  ClusterRun() = default;
  const InterruptGuard guard_;
  std::unique_ptr<Driver> driver_;
  bool began_ = false;
  Duration longest_pause_{};  // between two polls
};

}  // namespace leeway
