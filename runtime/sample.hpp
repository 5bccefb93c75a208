#pragma once
// sample: what a trained model of text writes when it is asked to go on.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/expected.hpp"
#include "plan/values.hpp"
#include "runtime/result.hpp"

namespace leeway {

struct SampleOptions {
  std::string prompt;  // to go on from; empty: as at the beginning of a line
  std::int64_t characters = 500;
  /// Below 1 likely characters become likelier still; 0: always the likeliest.
  double temperature = 0.8;
  std::uint64_t seed = 1;
};

/// The prompt and as many characters more, each drawn from what the model says of its place after
/// at most a context of those before. The same arguments give the same text on one kind of
/// processor. Errors: a plan whose data is no text, weights of another model, or with numbers that
/// are not finite, a character of the prompt that the vocabulary lacks, options out of range.
Expected<std::string> sample(const Plan& plan, const Vocabulary& vocabulary,
                             const NamedTensors& weights, const SampleOptions& options = {});

/// The same of a run that has just ended.
Expected<std::string> sample(const Result& result, const SampleOptions& options = {});

/// The same of a run's folder: its plan.json, vocabulary.json and weights.safetensors. Errors also
/// tell which of them is missing.
Expected<std::string> sample(const std::string& folder, const SampleOptions& options = {});

}  // namespace leeway
