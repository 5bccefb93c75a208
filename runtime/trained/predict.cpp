#include "runtime/trained/predict.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/text.hpp"
#include "runtime/trained/input.hpp"

namespace leeway {
namespace {

/// A field of a CSV file (RFC 4180).
std::string field_of(const std::string& text) {
  const bool plain = text.find_first_of(",\"\r\n") == std::string::npos && !text.empty() &&
                     text.front() != ' ' && text.back() != ' ';
  if (plain) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

/// The shortest text of the nearest float.
std::string number_text(double value) {
  std::array<char, 32> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), static_cast<float>(value)).ptr;
  return {text.data(), end};
}

std::string header_of(const TrainedModel& trained) {
  std::string header = "predicted";
  if (const auto outputs = trained.model->output().count(); trained.classes() == 0 && outputs > 1) {
    header.clear();
    for (std::int64_t i = 1; i <= outputs; ++i) header += concat(i > 1 ? "," : "", "predicted ", i);
  }
  for (int i = 0; i < trained.classes(); ++i) header += ',' + field_of(trained.class_name(i));
  return header;
}

std::string line_of(const TrainedModel& trained, const std::vector<double>& values) {
  std::string line;
  if (trained.classes() > 0) {
    const auto best = std::max_element(values.begin(), values.end()) - values.begin();
    line = field_of(trained.class_name(static_cast<int>(best)));
  }
  for (const double value : values) line += concat(line.empty() ? "" : ",", number_text(value));
  return line;
}

}  // namespace

Status predict(const TrainedModel& trained, const std::string& path, const LineSink& write) {
  const auto samples = read_samples(trained, path, Labels::ignored);
  if (!samples) return samples.error();
  ForwardPass pass(trained);
  if (Status status = write(header_of(trained)); !status) return status;
  const std::int64_t width = trained.model->output().count();
  for (std::int64_t first = 0; first < samples->count; first += pass.batch()) {
    const std::int64_t count = std::min(pass.batch(), samples->count - first);
    pass.run(count, samples->x.data() + first * trained.model->input().count(), nullptr, nullptr);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::span<const float> outputs(pass.outputs() + i * width,
                                           static_cast<std::size_t>(width));
      if (!are_finite(outputs))
        return Error{concat(path, ": the outputs for sample ", first + i + 1,
                            " are not finite, so the model has diverged; train again with a "
                            "smaller --lr")};
      if (Status status = write(line_of(trained, interpret(trained, outputs))); !status)
        return status;
    }
  }
  return {};
}

}  // namespace leeway
