#include "runtime/sample.hpp"

#include <algorithm>
#include <cmath>

#include "core/rng.hpp"
#include "core/text.hpp"
#include "kernels/executor.hpp"
#include "models/datasets/file.hpp"
#include "models/datasets/vocabulary.hpp"
#include "models/model.hpp"
#include "models/pass.hpp"
#include "models/safetensors.hpp"
#include "plan/plan.hpp"

namespace leeway {
namespace {

constexpr std::int64_t kMaxCharacters = 10'000'000;
constexpr std::uint64_t kSampleStream = 0x73616d706c65;

Status check(const SampleOptions& options) {
  if (options.characters < 1 || options.characters > kMaxCharacters)
    return Error{concat("--characters: ", options.characters, " is not allowed; give 1 to ",
                        kMaxCharacters)};
  if (!(options.temperature >= 0) || !std::isfinite(options.temperature))
    return Error{concat("--temperature: ", options.temperature,
                        " is not allowed; give 0 or more, such as 0.8")};
  return {};
}

Expected<std::shared_ptr<const Model>> model_of(const Plan& plan, const Vocabulary& vocabulary) {
  if (plan.simulated && plan.simulated->cost_only)
    return Error{concat("the run \"", plan.name,
                        "\" has no trained weights; train again without --gradients none")};
  const auto* text = std::get_if<plan::TextCorpus>(&plan.data);
  if (!text)
    return Error{concat("the run \"", plan.name,
                        "\" was not trained on text; give a run on text, such as char-gpt's")};
  return Model::build(plan.model, plan.loss, {text->context}, vocabulary.size(), 0, text->context);
}

/// Each parameter's tensor, by name.
Expected<std::vector<RowSlice<const float>>> rows_of(const Model& model,
                                                     const std::vector<NamedTensor>& weights) {
  std::vector<RowSlice<const float>> rows;
  for (const auto& parameter : model.parameters()) {
    const auto found = std::find_if(weights.begin(), weights.end(), [&](const auto& tensor) {
      return tensor.name == parameter.name;
    });
    if (found == weights.end() || found->shape != parameter.spec.shape ||
        found->dtype != DType::f32)
      return Error{concat(
          "the weights do not match the plan's model: ", parameter.name, " is ",
          found == weights.end() ? std::string("missing") : concat("of shape ", found->shape),
          " and should be of shape ", parameter.spec.shape, "; give the folder of a single run")};
    rows.push_back({0, parameter.spec.shape.rows(), found->data.as_floats()});
  }
  return rows;
}

/// Draws a token from logits; -1 if one is not finite.
std::int32_t draw(std::span<const float> logits, double temperature, Rng& rng) {
  for (const float logit : logits)
    if (!std::isfinite(logit)) return -1;
  const auto likeliest = std::max_element(logits.begin(), logits.end());
  if (temperature == 0) return static_cast<std::int32_t>(likeliest - logits.begin());
  std::vector<double> cumulative;
  double sum = 0;
  for (const float logit : logits) {
    sum += std::exp((static_cast<double>(logit) - static_cast<double>(*likeliest)) / temperature);
    cumulative.push_back(sum);
  }
  const auto drawn = std::upper_bound(cumulative.begin(), cumulative.end(), rng.uniform() * sum);
  return static_cast<std::int32_t>(std::min(drawn, cumulative.end() - 1) - cumulative.begin());
}

/// Evaluates the model for the next token of a text.
class NextToken {
 public:
  NextToken(std::shared_ptr<const Model> model, std::span<const RowSlice<const float>> rows)
      : pass_(model, 1, false),
        context_(model->input().count()),
        vocabulary_(model->output().count() / model->labels()),
        x_(static_cast<std::size_t>(context_)),
        labels_(static_cast<std::size_t>(context_)) {
    for (const auto& row : rows) views_.push_back({&row, 1});
    versions_.assign(views_.size(), 1);
  }

  /// Logits of the token after `text`. Requires a text that is not empty.
  std::span<const float> logits(std::span<const std::int32_t> text) {
    const auto context = text.last(std::min(text.size(), x_.size()));
    // Attention is causal, so the padding after the text has no effect.
    std::fill(std::copy(context.begin(), context.end(), x_.begin()), x_.end(), 0.0f);
    pass_.forward({.size = 1, .x = x_.data(), .labels = labels_.data()}, views_, versions_);
    const auto last = static_cast<std::int64_t>(context.size()) - 1;
    return {pass_.outputs() + last * vocabulary_, static_cast<std::size_t>(vocabulary_)};
  }

 private:
  Pass pass_;
  std::int64_t context_, vocabulary_;
  std::vector<float> x_;
  std::vector<std::int32_t> labels_;  // required by the pass, unused
  std::vector<ParameterView> views_;
  std::vector<std::uint64_t> versions_;
};

/// The hidden text before an empty prompt: a line end, or token 0 if the vocabulary lacks it.
std::vector<std::int32_t> line_begin(const Vocabulary& vocabulary) {
  const auto line_end = vocabulary.numbers("\n", "");
  return line_end ? *line_end : std::vector<std::int32_t>{0};
}

}  // namespace

Expected<std::string> sample(const Plan& plan, const Vocabulary& vocabulary,
                             const NamedTensors& weights, const SampleOptions& options) {
  if (const auto valid = check(options); !valid) return valid.error();
  const auto model = model_of(plan, vocabulary);
  if (!model) return model.error();
  const auto rows = rows_of(**model, weights);
  if (!rows) return rows.error();
  auto tokens = vocabulary.numbers(options.prompt, "--prompt");
  if (!tokens) return tokens.error();
  if (tokens->empty()) tokens = line_begin(vocabulary);
  NextToken next(*model, *rows);
  Rng rng = Rng::stream(options.seed, kSampleStream, 0);
  std::string text = options.prompt;
  for (std::int64_t i = 0; i < options.characters; ++i) {
    const std::int32_t token = draw(next.logits(*tokens), options.temperature, rng);
    if (token < 0)
      return Error{
          "the model's outputs are not finite, so it has diverged; train again with a "
          "smaller --lr"};
    tokens->push_back(token);
    text += vocabulary.character(token);
  }
  return text;
}

Expected<std::string> sample(const Result& result, const SampleOptions& options) {
  if (!result.vocabulary || !result.weights)
    return Error{"the run has no weights or no vocabulary; let a run on text finish"};
  return sample(result.plan, *result.vocabulary, *result.weights, options);
}

Expected<std::string> sample(const std::string& folder, const SampleOptions& options) {
  if (!file_exists(folder + "/plan.json"))
    return Error{concat(folder, ": is not a run folder; give one, such as runs/char-gpt-...")};
  const auto plan = plan_from_file(folder + "/plan.json");
  if (!plan) return plan.error();
  if (const auto valid = validate(*plan); !valid)
    return Error{concat(folder, "/plan.json: ", valid.error().text)};
  const std::string characters = folder + "/vocabulary.json";
  if (!file_exists(characters))
    return Error{concat(folder, ": has no vocabulary.json, so the run \"", plan->name,
                        "\" was not trained on text; give a run on text, such as char-gpt's")};
  const auto json = read_file(characters, "train again");
  if (!json) return json.error();
  const auto vocabulary = Vocabulary::parse(
      std::string(reinterpret_cast<const char*>(json->data()), json->size()), characters);
  if (!vocabulary) return vocabulary.error();
  const std::string path = folder + "/weights.safetensors";
  if (!file_exists(path))
    return Error{concat(folder,
                        ": has no weights.safetensors, so the run has not finished; let it "
                        "finish, or train again")};
  const auto weights = read_safetensors(path);
  if (!weights) return weights.error();
  auto text = sample(*plan, **vocabulary, weights->tensors, options);
  if (!text) return Error{concat(folder, ": ", text.error().text)};
  return text;
}

}  // namespace leeway
