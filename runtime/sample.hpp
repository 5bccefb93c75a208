#pragma once
// sample: generates text with a trained model, which runtime/result.hpp does for a result.
#include <string>

#include "core/expected.hpp"
#include "plan/values.hpp"
#include "runtime/result.hpp"

namespace leeway {

/// Returns the prompt followed by `characters` characters, each drawn from the model's distribution
/// given at most one context of previous characters. The same arguments give the same text on one
/// kind of CPU. Errors: data that is not text, weights of another model or of a diverged one, a
/// prompt with characters outside of the vocabulary, options out of range.
Expected<std::string> sample(const Plan& plan, const Vocabulary& vocabulary,
                             const NamedTensors& weights, const SampleOptions& options = {});

/// The same for a run folder with plan.json, vocabulary.json and weights.safetensors. Errors also
/// name a missing file.
Expected<std::string> sample(const std::string& folder, const SampleOptions& options = {});

}  // namespace leeway
