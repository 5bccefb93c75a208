// Writes a program that loads and runs a trained model with PyTorch.
#include <filesystem>
#include <sstream>

#include "core/files.hpp"
#include "core/text.hpp"
#include "models/weights_metadata.hpp"
#include "runtime/trained/export.hpp"
#include "runtime/trained/module_tree.hpp"
#include "runtime/trained/torch_program.hpp"

namespace leeway {
namespace {

const char* text_of(bool value) {
  return value ? "True" : "False";
}

/// The lines of nn.Sequential for the layers of a plan. Remembers which classes they use.
class Modules {
 public:
  explicit Modules(const Model& model) : tree_(model) {}

  /// `path`: prefix of the layers' names, "" or "3.body.".
  Status add(const std::vector<plan::Layer>& layers, const std::string& path, int depth) {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const std::string place = concat(path, i);
      out_ << std::string(static_cast<std::size_t>(4 * depth), ' ');
      if (const auto* residual = std::get_if<plan::Residual>(&layers[i])) {
        if (Status status = add_residual(*residual, place, depth); !status) return status;
        continue;
      }
      if (const auto* custom = std::get_if<plan::CustomLayer>(&layers[i]))
        return Error{concat("layer ", place, " (custom \"", custom->name,
                            "\") is part of the scenario program, and PyTorch lacks it; export a "
                            "model without custom layers")};
      const auto made = std::visit(
          [&](const auto& layer) -> Expected<std::string> {
            if constexpr (requires { this->module(layer, place); })
              return this->module(layer, place);
            else
              return Error{concat("layer ", place,
                                  ": its kind cannot be exported to PyTorch; use "
                                  "its weights in weights.safetensors")};
          },
          layers[i]);
      if (!made) return made.error();
      out_ << *made << ",  # " << place << '\n';
    }
    return {};
  }

  std::string text() const { return out_.str(); }
  bool uses_residual = false, uses_positions = false, uses_attention = false,
       uses_unembedding = false;

 private:
  Status add_residual(const plan::Residual& residual, const std::string& place, int depth) {
    uses_residual = true;
    const std::string indent(static_cast<std::size_t>(4 * depth), ' ');
    out_ << "Residual(  # " << place << '\n' << indent << "    body=nn.Sequential(\n";
    if (Status status = add(residual.body, place + ".body.", depth + 2); !status) return status;
    out_ << indent << "    ),\n" << indent << "    shortcut=nn.Sequential(\n";
    if (Status status = add(residual.shortcut, place + ".shortcut.", depth + 2); !status)
      return status;
    out_ << indent << "    )),\n";
    return {};
  }

  std::string module(const plan::Linear& of, const std::string& place) const {
    const Shape& weight = tree_.shape(place + ".weight");
    return concat("nn.Linear(", weight[1], ", ", weight[0], ", bias=", text_of(of.bias), ')');
  }
  std::string module(const plan::Conv2d& of, const std::string& place) const {
    return concat("nn.Conv2d(", tree_.input(place)[0], ", ", of.outputs, ", ", of.kernel,
                  ", stride=", of.stride, ", padding=", of.padding, ", groups=", of.groups,
                  ", bias=", text_of(of.bias), ')');
  }
  std::string module(const plan::MaxPool2d& of, const std::string&) const {
    return concat("nn.MaxPool2d(", of.kernel, ", ", of.stride, ", ", of.padding, ')');
  }
  std::string module(const plan::AvgPool2d& of, const std::string& place) const {
    if (of.kernel > 0)
      return concat("nn.AvgPool2d(", of.kernel, ", ", of.stride, ", ", of.padding, ')');
    const Shape& input = tree_.input(place);
    return concat("nn.AvgPool2d((", input[1], ", ", input[2], "))");
  }
  std::string module(const plan::BatchNorm& of, const std::string& place) const {
    return concat("nn.BatchNorm", tree_.input(place).rank() == 3 ? "2d(" : "1d(",
                  tree_.input(place)[0], ", eps=", of.epsilon, ", momentum=", of.momentum, ')');
  }
  std::string module(const plan::LayerNorm& of, const std::string& place) const {
    return concat("nn.LayerNorm(", tree_.shape(place + ".weight").count(), ", eps=", of.epsilon,
                  ')');
  }
  std::string module(const plan::Embedding&, const std::string& place) const {
    const Shape& weight = tree_.shape(place + ".weight");
    return concat("(table := nn.Embedding(", weight[0], ", ", weight[1], "))");
  }
  std::string module(const plan::Positions&, const std::string& place) {
    uses_positions = true;
    const Shape& weight = tree_.shape(place + ".weight");
    return concat("Positions(", weight[0], ", ", weight[1], ')');
  }
  std::string module(const plan::Attention& of, const std::string&) {
    uses_attention = true;
    return concat("Attention(heads=", of.heads, ')');
  }
  std::string module(const plan::Unembedding&, const std::string&) {
    uses_unembedding = true;
    return "Unembedding(table)";
  }
  std::string module(const plan::Dropout& of, const std::string&) const {
    return concat("nn.Dropout(", of.probability, ')');
  }
  std::string module(const plan::Relu&, const std::string&) const { return "nn.ReLU()"; }
  std::string module(const plan::Gelu&, const std::string&) const { return "nn.GELU()"; }
  std::string module(const plan::Tanh&, const std::string&) const { return "nn.Tanh()"; }
  std::string module(const plan::Sigmoid&, const std::string&) const { return "nn.Sigmoid()"; }
  std::string module(const plan::Flatten&, const std::string&) const { return "nn.Flatten()"; }

  ModuleTree tree_;
  std::ostringstream out_;
};

/// A name in a comment of a program: one line without quotes.
std::string plain(const std::string& name) {
  std::string out = name;
  for (char& c : out)
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20) c = ' ';
  return out;
}

Expected<std::string> program_of(const TrainedModel& trained) {
  Modules modules(*trained.model);
  if (Status status = modules.add(trained.plan.model, "", 2); !status) return status.error();
  std::string text = concat("#!/usr/bin/env python3\n\"\"\"", plain(trained.plan.name),
                            ": a model that Leeway has trained, for PyTorch.\n", torch::kHead);
  if (modules.uses_residual) text += torch::kResidual;
  if (modules.uses_positions) text += torch::kPositions;
  if (modules.uses_attention) text += torch::kAttention;
  if (modules.uses_unembedding) text += torch::kUnembedding;
  const char* answers = trained.plan.loss == plan::Loss::softmax_cross_entropy ? "softmax"
                        : trained.plan.loss == plan::Loss::mean_squared_error  ? "numbers"
                        : trained.classes() == 2                               ? "two classes"
                                                                               : "shares";
  text +=
      concat("\n\n# What the outputs mean: softmax, two classes, shares or numbers.\nANSWERS = \"",
             answers, "\"\n\n\ndef build():\n    return nn.Sequential(\n", modules.text(),
             "    )\n", torch::kTail);
  return text;
}

}  // namespace

Expected<std::vector<std::string>> export_torch(const TrainedModel& trained,
                                                const std::string& folder) {
  const auto program = program_of(trained);
  if (!program) return Error{concat(trained.path, ": ", program.error().text)};
  if (const Status made = disk().make_folder(folder); !made)
    return Error{concat(made.error().text, "; give another folder with --out DIR")};
  const std::string path = folder + "/model.py", weights = folder + "/weights.safetensors";
  Status written = write_durably(disk(), path, *program);
  if (written)
    written = write_safetensors(weights, trained.weights,
                                weights_metadata(trained.plan, trained.preprocessing.get()));
  if (!written) return written.error();
  std::error_code ignored;
  std::filesystem::permissions(path, std::filesystem::perms::owner_exec,
                               std::filesystem::perm_options::add, ignored);
  return std::vector<std::string>{path, weights};
}

}  // namespace leeway
