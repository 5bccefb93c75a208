#pragma once
// RunFolder: stores the plan, metrics, result, weights and curves of a run.
//
//   plan.json                  the plan
//   preprocessing.json         how raw input becomes the model's input: see Preprocessing
//   metrics.jsonl              JSON lines: {"seconds", "train_loss", ...} a few times per second,
//                              {"seconds", "test_loss", ...} at evaluations
//   result.json                the result
//   weights.safetensors        the trained weights, with PyTorch's names
//   last-snapshot.safetensors  if the run failed: the weights of the last evaluation
//   vocabulary.json            for text: its characters in the order of their tokens
//   curves.svg                 loss and accuracy over time
//   events.bin                 every event, with --trace: see EventFile
//   events.jsonl               the same as JSON lines, with --trace-json
//   events.out.tfevents.*      the metrics for TensorBoard, with --tensorboard
//   messages.bin               every message, with --trace-messages
//   checkpoints/               states from which the run can be resumed: see checkpoint/store.hpp
#include <memory>
#include <string>
#include <vector>

#include "actors/monitor/monitor.hpp"
#include "core/expected.hpp"
#include "core/folder_lock.hpp"
#include "models/safetensors.hpp"
#include "monitoring/line_file.hpp"
#include "monitoring/picture.hpp"

namespace leeway {

/// A file of a run folder that could not be written.
struct UnwrittenFile {
  std::string name;
  std::string cause;
};

/// A file that lacks what could not be written.
struct LossyFile {
  std::string name;
  std::string unit;  // "lines"
  std::uint64_t written = 0, lost = 0;
  std::string cause;  // of the first loss
};

/// The files of a run with all its events or messages.
struct OutputFiles {
  std::vector<LossyFile> lossy;
  Status messages;     // whether messages.bin is complete
  Status tensorboard;  // whether events.out.tfevents.* is
};

class RunFolder final : public Audience {
 public:
  /// Creates the folder and writes the plan. Errors: the folder holds another run or cannot be
  /// created.
  static Expected<std::unique_ptr<RunFolder>> create(const std::string& folder, const Job& job);

  /// Continues the folder of a run that is resumed: adds to its metrics and curves, and replaces
  /// the plan.
  static Expected<std::unique_ptr<RunFolder>> resume(const std::string& folder, const Job& job);

  std::string path(const std::string& file) const { return folder_ + "/" + file; }

  void progress(const Progress& progress) override;
  void evaluated(const EvaluationResult& result) override;
  void checkpointed(const CheckpointResult& result) override;
  void evicted(WorkerId worker, const msg::Evicted& evicted) override;
  void came_back(WorkerId worker) override;
  void ended(const RunTotals& totals) override;

  /// Writes the weights that a failed run evaluated last, at `iteration`.
  Status keep_last_snapshot(const std::vector<NamedTensor>& weights, Iteration iteration);
  /// Writes the result, the curves, and the weights unless empty: the small files first, so that a
  /// full disk costs as few of them as possible. Returns those that could not be written.
  const std::vector<UnwrittenFile>& finish(const std::string& result_json,
                                           const std::vector<NamedTensor>& weights);
  /// "Kept in FOLDER: plan.json, ...", and a line for each file that is missing or incomplete.
  std::string kept_text(OutputFiles outputs) const;

 private:
  RunFolder(std::string folder, const Job& job, std::unique_ptr<FolderLock> lock);
  /// Reads the metrics up to the checkpoint that is resumed.
  void read_metrics(std::uint64_t samples_trained);
  double seconds_of(Instant at) const { return seconds_before_ + (at - Instant{}).seconds(); }
  /// Takes the lock of the folder and writes the plan.
  static Expected<std::unique_ptr<RunFolder>> open(const std::string& folder, const Job& job);

  std::string folder_;
  std::unique_ptr<FolderLock> lock_;
  std::string name_;
  Metadata metadata_;  // of files of weights
  bool classes_;
  bool has_losses_;
  bool adaptive_;  // the staleness bound moves
  LineFile metrics_;
  std::vector<UnwrittenFile> unwritten_;
  double seconds_before_ = 0;  // of a resumed run, up to its checkpoint
  Series train_, train_accuracy_, test_, test_accuracy_;
};

/// Creates the folder of a study, which compares several runs. Errors: the folder holds a run or a
/// study, or cannot be created.
Status make_study_folder(const std::string& folder);

/// `runs/NAME-DATE-TIME`, with a suffix if the name is taken.
std::string default_run_folder(const std::string& name);

}  // namespace leeway
