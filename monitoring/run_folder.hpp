#pragma once
// RunFolder: keeps a run - its plan, metrics as they come, result, weights and curves.
//
//   plan.json            what was run
//   metrics.jsonl        one JSON object a line: {"seconds", "train_loss", ...} a few times a
//   second, {"seconds", "test_loss", ...} at evaluations result.json          the end
//   weights.safetensors  the trained weights, named as PyTorch names them
//   last-cut.safetensors of a run that failed: the weights that were evaluated last
//   vocabulary.json      of text: its characters, in the order of their numbers
//   curves.svg           loss and accuracy over time
//   events.jsonl         every event, with --trace
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "actors/monitor/monitor.hpp"
#include "core/expected.hpp"
#include "models/safetensors.hpp"

namespace leeway {

class RunFolder final : public Audience {
 public:
  /// Makes the folder and writes the plan. Errors: a folder that holds another run, or cannot be
  /// made.
  static Expected<std::unique_ptr<RunFolder>> create(const std::string& folder, const Job& job);

  std::string path(const std::string& file) const { return folder_ + "/" + file; }

  void progress(const Progress& progress) override;
  void evaluated(const EvaluationResult& result) override;
  void evicted(WorkerId worker, const msg::Evicted& evicted) override;
  void came_back(WorkerId worker) override;
  void ended(const RunTotals& totals) override;

  /// Writes the weights at an iteration that a run which has failed evaluated last.
  Status keep_last_snapshot(const std::vector<NamedTensor>& weights, Iteration iteration);
  /// Writes result, weights (if any) and curves.
  Status finish(const std::string& result_json, const std::vector<NamedTensor>& weights,
                const std::vector<Progress>& history);

 private:
  RunFolder(std::string folder, const Job& job);

  std::string folder_;
  std::string name_;
  bool classes_;
  bool learns_;    // losses are computed
  bool adaptive_;  // the staleness bound moves
  std::ofstream metrics_;
  std::vector<EvaluationResult> evaluations_;
};

/// Makes the folder of what compares several runs. Errors: one that holds a run, or a comparison,
/// or cannot be made.
Status make_study_folder(const std::string& folder);

/// `runs/NAME-DATE-TIME`, the first such name that is free.
std::string default_run_folder(const std::string& name);

}  // namespace leeway
