#pragma once
// CheckpointChecker: every checkpoint in the folder of a run is complete, and its weights have the
// samples that its supply lacks.
#include <memory>
#include <optional>

#include "actors/job.hpp"
#include "checkpoint/store.hpp"
#include "core/expected.hpp"
#include "sim/checkers/checker.hpp"

namespace leeway::sim {

/// Reads and checks one checkpoint of a model: every file has the size and digest of the manifest,
/// the tensors are those of the model, and every block has the samples that the supply lacks, or
/// under fp16 at most these. The error names the file or the block.
Expected<checkpoint::Checkpoint> read_checked(const checkpoint::Store& store, std::uint64_t number,
                                              const Model& model);

/// Checks all visible checkpoints, and that they are at most `keep`.
Status check_checkpoints(const checkpoint::Store& store, std::size_t keep, const Model& model);

class CheckpointChecker final : public Checker {
 public:
  explicit CheckpointChecker(std::shared_ptr<const Job> job)
      : Checker("every visible checkpoint is complete"), job_(std::move(job)) {}
  void on_event(Instant, Address actor, const Event& event) override;
  void on_run_ended(const RunTotals& totals) override;

  /// The checkpoint that was written last. Other checkers compare it with their own records, so
  /// this one precedes them in the catalogue.
  const std::optional<checkpoint::Checkpoint>& latest() const { return latest_; }

 private:
  std::shared_ptr<const Job> job_;
  std::optional<checkpoint::Checkpoint> latest_;
};

}  // namespace leeway::sim
