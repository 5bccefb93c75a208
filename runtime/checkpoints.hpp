#pragma once
// RunCheckpoints: the folder to which a run writes its checkpoints, and the checkpoint from which
// it resumes.
#include <memory>
#include <string>

#include "checkpoint/store.hpp"
#include "core/folder_lock.hpp"

namespace leeway {

struct JobOptions;
struct RunOptions;
struct TrainTest;
class Model;

/// A complete checkpoint of a run.
struct ResumePoint {
  std::string folder;  // of all checkpoints of the run, absolute
  std::uint64_t number = 0;
  std::string run_folder;  // empty: the checkpoints lie elsewhere
  Plan plan;               // of the run

  std::string path() const;
};

/// The folder in which a run with this plan and run folder keeps its checkpoints; empty: none.
std::string checkpoint_folder(const Plan& plan, const std::string& run_folder);

/// The run folder that holds a folder of checkpoints; empty: it lies elsewhere.
std::string run_folder_of(const std::string& checkpoints);

/// A run's latest checkpoint, or the one that `where` names. `where`: the folder of a run, of its
/// checkpoints or of one checkpoint; or "latest", the run in runs/ that has written a checkpoint
/// last. Error: there is none, or it is not a run of the scenario `name`, unless this is empty.
Expected<ResumePoint> find_checkpoint(const std::string& where, const std::string& name);

/// The folder with the checkpoints of a run. `where`: the folder of the run or of its checkpoints.
Expected<std::string> checkpoints_of(const std::string& where);

class RunCheckpoints {
 public:
  ~RunCheckpoints();
  RunCheckpoints(const RunCheckpoints&) = delete;
  RunCheckpoints& operator=(const RunCheckpoints&) = delete;
  /// Locks the folder for this process. Errors: it belongs to another run, another process uses it,
  /// or it cannot be created; or options.resume names no checkpoint.
  static Expected<std::unique_ptr<RunCheckpoints>> open(const Plan& plan,
                                                        const RunOptions& options);

  /// True if the run continues in the folder of the run that it resumes.
  bool continues(const std::string& run_folder) const;
  /// Loads and verifies the checkpoint to resume from, if any, and sets the options of the job.
  Status prepare(const Plan& plan, const Model& model, const TrainTest& data, JobOptions& job);
  /// Lets nodes see whether they share the folder, until claim() or the end of this object.
  Status put_mark() const;
  /// Records in the folder that this start of the run writes there. Call when nothing else can
  /// refuse the run. Error: another process has written a checkpoint meanwhile.
  Status claim() const;

 private:
  RunCheckpoints() = default;
  Status lock_folder(bool at_once);

  std::shared_ptr<checkpoint::Store> store_;   // null: the run writes none
  std::shared_ptr<checkpoint::Store> source_;  // null: the run begins
  ResumePoint from_;
  std::string continued_;  // the run folder, if the run continues there
  std::string run_;
  std::uint64_t next_ = 1;
  std::unique_ptr<FolderLock> lock_;
};

}  // namespace leeway
