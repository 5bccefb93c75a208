#pragma once
// The subcommands `leeway evaluate`, `leeway predict` and `leeway export`, with their flags.
#include <string>

#include "runtime/trained/evaluate.hpp"

namespace CLI {
class App;
}

namespace leeway::cli {

struct EvaluateCommand {
  std::string run;  // a run folder or a file of weights
  EvaluateOptions from;
  std::string picture;  // file for an SVG picture, or empty
};
CLI::App* add_evaluate(CLI::App& app, EvaluateCommand& command);
int evaluate(const EvaluateCommand& command);

struct PredictCommand {
  std::string run, file;
  std::string out;  // empty: the terminal
};
CLI::App* add_predict(CLI::App& app, PredictCommand& command);
int predict(const PredictCommand& command);

struct ExportCommand {
  std::string run;
  bool torch = false, onnx = false;
  std::string out;  // folder; empty: torch/ or onnx/ in the run folder
};
CLI::App* add_export(CLI::App& app, ExportCommand& command);
int export_model(const ExportCommand& command);

}  // namespace leeway::cli
