#include "actors/scheduler/commit_work.hpp"

#include "core/this_host.hpp"

namespace leeway {

void CommitWork::run(int) {
  if (!error_.empty()) {
    (void)job_->checkpoints->remove(manifest_.number);
    return;
  }
  if (!job_->plan.simulated) manifest_.written = utc_now();
  const Status done =
      job_->checkpoints->commit(manifest_, job_->given, job_->plan.checkpoints.keep);
  if (!done) error_ = done.error().text;
}

}  // namespace leeway
