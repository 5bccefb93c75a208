// leeway evaluate, leeway predict and leeway export: use a trained model.
#include "cli/trained.hpp"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

#include "cli/commands.hpp"
#include "core/files.hpp"
#include "runtime/flags/option.hpp"
#include "runtime/trained/export.hpp"
#include "runtime/trained/predict.hpp"
#ifdef LEEWAY_ONNX
#include "cli/onnx_model.hpp"
#endif

namespace leeway::cli {
namespace {

constexpr const char* kRunHelp =
    "Folder of a run, such as runs/fashion-mlp-..., or a file of weights that a run wrote";

Expected<std::vector<std::string>> export_onnx([[maybe_unused]] const TrainedModel& trained,
                                               [[maybe_unused]] const std::string& folder) {
#ifdef LEEWAY_ONNX
  if (const Status made = disk().make_folder(folder); !made) return made.error();
  const std::string path = folder + "/model.onnx";
  if (const Status written = write_onnx(trained, path); !written) return written.error();
  return std::vector<std::string>{path};
#else
  return Error{
      "--onnx: this leeway was built without ONNX; install libonnx-dev and build it "
      "again, or give --torch"};
#endif
}

}  // namespace

CLI::App* add_evaluate(CLI::App& app, EvaluateCommand& command) {
  auto* evaluate = app.add_subcommand(
      "evaluate", "Loss, accuracy, confusion and calibration of a trained model");
  add_value(*evaluate, "RUN", command.run, kRunHelp)->required();
  add_value(*evaluate, "--data", command.from.data,
            "CSV file with the label column, or IDX file of images [the run's test "
            "data]");
  add_value(*evaluate, "--labels", command.from.labels, "IDX file with the labels of the images");
  add_value(*evaluate, "--picture", command.picture, "SVG file for a picture of the tables");
  return evaluate;
}

int evaluate(const EvaluateCommand& command) {
  const auto trained = load_trained(command.run);
  if (!trained) return refuse(trained.error());
  const auto result = leeway::evaluate(*trained, command.from);
  if (!result) return refuse(result.error());
  std::cout << text_of(*result);
  if (!command.picture.empty())
    if (const Status written = write_durably(disk(), command.picture, picture_of(*result));
        !written)
      return refuse(written.error(), kExitFailed);
  return kExitOk;
}

CLI::App* add_predict(CLI::App& app, PredictCommand& command) {
  auto* predict =
      app.add_subcommand("predict", "Predict the labels of a file with a trained model, as CSV");
  add_value(*predict, "RUN", command.run, kRunHelp)->required();
  add_value(*predict, "FILE", command.file,
            "CSV file with the columns of the training data, or IDX file of images")
      ->required();
  add_value(*predict, "--out", command.out, "File for the predictions [the terminal]");
  return predict;
}

int predict(const PredictCommand& command) {
  const auto trained = load_trained(command.run);
  if (!trained) return refuse(trained.error());
  std::string lines;  // of the file, which is written as a whole
  const Status done = leeway::predict(*trained, command.file, [&](const std::string& line) {
    if (command.out.empty()) {
      std::cout << line << '\n';
      return std::cout ? Status() : Status(Error{"the output could not be written"});
    }
    lines += line;
    lines += '\n';
    return Status();
  });
  if (!done) return refuse(done.error());
  if (command.out.empty()) return kExitOk;
  const Status written = write_durably(disk(), command.out, lines);
  return written ? kExitOk : refuse(written.error(), kExitFailed);
}

CLI::App* add_export(CLI::App& app, ExportCommand& command) {
  auto* exporting =
      app.add_subcommand("export", "Write a trained model for PyTorch, or as an ONNX file");
  add_value(*exporting, "RUN", command.run, kRunHelp)->required();
  auto* torch = add_switch(*exporting, "--torch", command.torch,
                           "A program model.py that needs only PyTorch, and the weights");
  add_switch(*exporting, "--onnx", command.onnx, "A file model.onnx, preprocessing included")
      ->excludes(torch);
  add_value(*exporting, "--out", command.out, "Folder for the files [torch or onnx in RUN]");
  return exporting;
}

int export_model(const ExportCommand& command) {
  if (!command.torch && !command.onnx) return refuse(Error{"export: give --torch or --onnx"});
  const auto trained = load_trained(command.run);
  if (!trained) return refuse(trained.error());
  std::string folder = command.out;
  if (folder.empty()) {
    std::error_code ignored;
    folder =
        std::filesystem::is_directory(command.run, ignored) ? command.run : folder_of(command.run);
    folder += command.torch ? "/torch" : "/onnx";
  }
  const auto written =
      command.torch ? export_torch(*trained, folder) : export_onnx(*trained, folder);
  if (!written) return refuse(written.error());
  for (const auto& path : *written) std::cout << "wrote " << path << '\n';
  return kExitOk;
}

}  // namespace leeway::cli
