#include "monitoring/metrics_file.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

namespace leeway {
namespace {

/// Samples that the run had trained at a line.
double samples_in(const nlohmann::json& line) {
  return number_in(line, line.contains("samples") ? "samples" : "samples_trained");
}

}  // namespace

double number_in(const nlohmann::json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? found->get<double>() : 0;
}

void drop_beyond(double samples, std::vector<nlohmann::json>& lines) {
  std::erase_if(lines, [&](const auto& line) { return samples_in(line) > samples; });
}

MetricsFile read_metrics(const std::string& folder) {
  MetricsFile metrics;
  std::ifstream file(folder + "/metrics.jsonl");
  for (std::string text; std::getline(file, text);) {
    auto line = nlohmann::json::parse(text, nullptr, false);
    if (!line.is_object()) continue;
    if (line.contains("resumed_from")) {
      drop_beyond(samples_in(line), metrics.lines);
      metrics.before_resume = metrics.lines.size();
      continue;
    }
    if (!line.contains("seconds")) {
      const auto before = metrics.lines.size() > metrics.before_resume ? metrics.lines.back()
                                                                       : nlohmann::json::object();
      line["seconds"] = number_in(before, "seconds");
      line["samples_trained"] = samples_in(before);
    }
    metrics.lines.push_back(std::move(line));
  }
  return metrics;
}

}  // namespace leeway
