#pragma once
// Result: the outcome of a run, for the program that started it.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/monitor/report.hpp"
#include "core/expected.hpp"
#include "plan/values.hpp"

namespace leeway {

class Vocabulary;
struct NamedTensor;  // models/safetensors.hpp
using NamedTensors = std::vector<NamedTensor>;

struct Result {
  bool ran = false;  // false: refused before it started, or nothing to run (--help)
  /// For main: 0 done, 1 failed, 2 refused, 130 interrupted, even if the signal arrived after the
  /// end.
  int exit_code = 0;
  std::string error;   // why it failed or was refused, and what to do
  std::string folder;  // the run folder; empty: none
  Plan plan;

  double seconds = 0;  // from the start of the actors to the end of training
  double samples_per_second = 0;
  std::uint64_t iterations = 0;  // of all workers together
  std::uint64_t samples_trained = 0;
  double test_loss = 0;
  double test_accuracy = 0;  // 0..1; 0 without classes
  std::int64_t max_clock_gap = 0;
  std::optional<std::int64_t> staleness_bound;  // none for asp; the largest if it moves
  std::uint64_t parked_pulls = 0;
  std::uint64_t partial_pushes = 0;
  std::uint64_t dropped_pushes = 0;  // by backup and quorum
  /// By straggler and by fault of the plan: see RunReport.
  std::vector<double> straggler_seconds;
  std::vector<bool> faults_fired;
  /// Stragglers and faults without an effect; under RunOptions::strict they fail the run.
  std::vector<std::string> warnings;
  std::uint64_t seed = 0;
  std::uint64_t train_samples = 0;  // in the training set
  /// The property that a simulated run has violated, as a checker names it; empty: none.
  std::string violated;
  double simulated_in_seconds = 0;  // real time of the simulation; 0: not simulated
  std::uint64_t protocol_hash = 0;  // of a simulated run; equal for equal runs

  std::shared_ptr<const Vocabulary> vocabulary;  // of text data; otherwise null
  std::shared_ptr<const NamedTensors> weights;   // in the model's order; null if a shard was lost
  /// The last evaluated weights of a failed run, or null.
  std::shared_ptr<const NamedTensors> last_snapshot;
  /// Everything else: workers, waits, version lags, evaluations. Also of a run that was refused or
  /// failed, `workers`, `version_lags`, `straggler_seconds` and `faults_fired` have full length.
  RunReport totals;
  std::vector<Progress> history;  // progress reports, a few per second

  bool ok() const { return ran && exit_code == 0; }
  /// False with --gradients none, when losses, accuracies and weights have no meaning.
  bool learned() const { return !(plan.simulated && plan.simulated->cost_only); }
  /// The weights of one parameter ("1.weight"), row-major. Throws CheckFailed for an unknown name.
  std::span<const float> weight(const std::string& name) const;
};

struct SampleOptions {
  std::string prompt;  // empty: begins a line
  std::int64_t characters = 500;
  /// Below 1, likely characters become even more likely; 0 always takes the likeliest.
  double temperature = 0.8;
  std::uint64_t seed = 1;
};

/// Continues a prompt with the text model that was trained: see runtime/sample.hpp.
Expected<std::string> sample(const Result& result, const SampleOptions& options = {});

}  // namespace leeway
