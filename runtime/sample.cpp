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

namespace leeway {
namespace {

constexpr std::int64_t kMostCharacters = 10'000'000;
constexpr std::uint64_t kSampleStream = 0x73616d706c65;

Status check(const SampleOptions& options) {
  if (options.characters < 1 || options.characters > kMostCharacters)
    return Error{concat("--characters: ", options.characters, " is not possible; give 1 to ",
                        kMostCharacters)};
  if (!(options.temperature >= 0) || !std::isfinite(options.temperature))
    return Error{concat("--temperature: ", options.temperature,
                        " is not possible; give 0 or more, such as 0.8")};
  return {};
}

Expected<std::shared_ptr<const Model>> model_of(const Plan& plan, const Vocabulary& vocabulary) {
  if (plan.simulated && plan.simulated->cost_only)
    return Error{concat("the run \"", plan.name,
                        "\" has learned nothing, its gradients were not computed; train again "
                        "without --gradients none")};
  const auto* writing = std::get_if<plan::TextCorpus>(&plan.data);
  if (!writing)
    return Error{concat("the run \"", plan.name,
                        "\" has not learned from a text; give one that has, such as char-gpt's")};
  return Model::build(plan.model, plan.loss, {writing->context}, vocabulary.size(), 0,
                      writing->context);
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
          "the weights are not those of the plan's model: ", parameter.name, " is ",
          found == weights.end() ? std::string("missing") : concat("of shape ", found->shape),
          ", not ", parameter.spec.shape, "; give a folder that one run has left")};
    rows.push_back({0, parameter.spec.shape.rows(), found->data.as_floats()});
  }
  return rows;
}

/// Draws a number by its logit; -1 when one is not finite.
std::int32_t draw(std::span<const float> logits, double temperature, Rng& rng) {
  for (const float logit : logits)
    if (!std::isfinite(logit)) return -1;
  const auto likeliest = std::max_element(logits.begin(), logits.end());
  if (temperature == 0) return static_cast<std::int32_t>(likeliest - logits.begin());
  std::vector<double> up_to;  // sums of the weights
  double sum = 0;
  for (const float logit : logits) {
    sum += std::exp((static_cast<double>(logit) - static_cast<double>(*likeliest)) / temperature);
    up_to.push_back(sum);
  }
  const auto drawn = std::upper_bound(up_to.begin(), up_to.end(), rng.uniform() * sum);
  return static_cast<std::int32_t>(std::min(drawn, up_to.end() - 1) - up_to.begin());
}

/// Goes on with a text, number by number.
class Writer {
 public:
  Writer(std::shared_ptr<const Model> model, std::span<const RowSlice<const float>> rows)
      : pass_(model, 1, false),
        context_(model->input().count()),
        vocabulary_(model->output().count() / model->labels()),
        x_(static_cast<std::size_t>(context_)),
        labels_(static_cast<std::size_t>(context_)) {
    for (const auto& row : rows) views_.push_back({&row, 1});
    versions_.assign(views_.size(), 1);
  }

  /// Logits of what comes after `text`, which is not empty.
  std::span<const float> next(std::span<const std::int32_t> text) {
    const auto seen = text.last(std::min(text.size(), x_.size()));
    // No place sees a later one, so what stands behind the text does not matter.
    std::fill(std::copy(seen.begin(), seen.end(), x_.begin()), x_.end(), 0.0f);
    pass_.forward({.size = 1, .x = x_.data(), .labels = labels_.data()}, views_, versions_);
    const auto place = static_cast<std::int64_t>(seen.size()) - 1;
    return {pass_.outputs() + place * vocabulary_, static_cast<std::size_t>(vocabulary_)};
  }

 private:
  Pass pass_;
  std::int64_t context_, vocabulary_;
  std::vector<float> x_;
  std::vector<std::int32_t> labels_;  // a pass wants some
  std::vector<ParameterView> views_;
  std::vector<std::uint64_t> versions_;
};

/// What stands before an empty prompt and is not shown: a line's end, or what is there.
std::vector<std::int32_t> line_begin(const Vocabulary& vocabulary) {
  const auto line_end = vocabulary.numbers("\n", "");
  return line_end ? *line_end : std::vector<std::int32_t>{0};
}

}  // namespace

Expected<std::string> sample(const Plan& plan, const Vocabulary& vocabulary,
                             const NamedTensors& weights, const SampleOptions& options) {
  if (const auto good = check(options); !good) return good.error();
  const auto model = model_of(plan, vocabulary);
  if (!model) return model.error();
  const auto rows = rows_of(**model, weights);
  if (!rows) return rows.error();
  auto numbers = vocabulary.numbers(options.prompt, "--prompt");
  if (!numbers) return numbers.error();
  if (numbers->empty()) numbers = line_begin(vocabulary);
  Writer writer(*model, *rows);
  Rng rng = Rng::stream(options.seed, kSampleStream, 0);
  std::string text = options.prompt;
  for (std::int64_t i = 0; i < options.characters; ++i) {
    const std::int32_t number = draw(writer.next(*numbers), options.temperature, rng);
    if (number < 0)
      return Error{
          "the model gives numbers that are not finite, so it has diverged; train again "
          "with a smaller --lr"};
    numbers->push_back(number);
    text += vocabulary.character(number);
  }
  return text;
}

Expected<std::string> sample(const Result& result, const SampleOptions& options) {
  if (!result.vocabulary || !result.weights)
    return Error{"the run has left no model of a text; let it end, with data of text"};
  return sample(result.plan, *result.vocabulary, *result.weights, options);
}

Expected<std::string> sample(const std::string& folder, const SampleOptions& options) {
  if (!file_exists(folder + "/plan.json"))
    return Error{
        concat(folder, ": is not the folder of a run; give one, such as runs/char-gpt-...")};
  const auto plan = plan_from_file(folder + "/plan.json");
  if (!plan) return plan.error();
  if (const auto valid = validate(*plan); !valid)
    return Error{concat(folder, "/plan.json: ", valid.error().text)};
  const std::string characters = folder + "/vocabulary.json";
  if (!file_exists(characters))
    return Error{concat(folder, ": has no vocabulary.json, so the run \"", plan->name,
                        "\" has not learned from a text; give one that has, such as char-gpt's")};
  const auto json = read_file(characters, "train again");
  if (!json) return json.error();
  const auto vocabulary = Vocabulary::parse(
      std::string(reinterpret_cast<const char*>(json->data()), json->size()), characters);
  if (!vocabulary) return vocabulary.error();
  const std::string path = folder + "/weights.safetensors";
  if (!file_exists(path))
    return Error{concat(folder,
                        ": has no weights.safetensors, so the run has not come to its end; "
                        "let it end, or train again")};
  const auto weights = read_safetensors(path);
  if (!weights) return weights.error();
  auto text = sample(*plan, **vocabulary, weights->tensors, options);
  if (!text) return Error{concat(folder, ": ", text.error().text)};
  return text;
}

}  // namespace leeway
