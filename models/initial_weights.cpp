#include "models/initial_weights.hpp"

#include <algorithm>
#include <map>

#include "core/text.hpp"
#include "kernels/convert.hpp"
#include "models/safetensors.hpp"
#include "plan/fine_tuning.hpp"

namespace leeway {

namespace {

/// Names that an error or a note lists.
constexpr std::size_t kShown = 8;

using Names = std::vector<std::string>;

/// "a, b and 3 more".
std::string shortened(Names names) {
  const std::size_t more = names.size() - std::min(names.size(), kShown);
  names.resize(names.size() - more);
  return concat(join(names, ", "), more > 0 ? concat(" and ", more, " more") : "");
}

/// "; missing: a, b and 3 more", or "" without names.
std::string listed(const char* what, const Names& names) {
  return names.empty() ? "" : concat("; ", what, ": ", shortened(names));
}

bool is_float(DType type) {
  return type == DType::f32 || type == DType::f16 || type == DType::bf16;
}

Blob as_floats(const NamedTensor& tensor) {
  if (tensor.dtype == DType::f32) return tensor.data;
  Blob floats = Blob::floats(tensor.shape.count());
  kernels::convert(floats.mutable_data(), DType::f32, tensor.data.data(), tensor.dtype,
                   tensor.shape.count());
  return floats;
}

/// The tensors of a file, by the names of the model, and how they fit the parameters.
class Matching {
 public:
  Matching(Safetensors file, std::span<const Parameter> parameters, bool partial)
      : file_(std::move(file)), parameters_(parameters), partial_(partial) {}

  /// Replaces the first prefix that a name begins with. The error names a prefix that no tensor
  /// has, or two tensors that get the same name.
  Status rename(const std::vector<std::pair<std::string, std::string>>& map) {
    std::vector<bool> used(map.size());
    const auto change = [&](std::string& name) {
      for (std::size_t i = 0; i < map.size(); ++i) {
        if (!name.starts_with(map[i].first)) continue;
        used[i] = true;
        name = map[i].second + name.substr(map[i].first.size());
        return;
      }
    };
    for (auto& tensor : file_.tensors) change(tensor.name);
    for (auto& name : file_.from_f64) change(name);
    for (auto& [name, type] : file_.left_out) change(name);
    for (std::size_t i = 0; i < map.size(); ++i)
      if (!used[i])
        return Error{concat("fine_tuning.init_map: no tensor begins with \"", map[i].first,
                            "\"; the file has ", shortened(names_in_file()))};
    for (const auto& tensor : file_.tensors) {
      if (tensor.name.ends_with(".num_batches_tracked")) continue;
      if (!tensors_.emplace(tensor.name, &tensor).second)
        return Error{concat("fine_tuning.init_map: gives two tensors the name ", tensor.name,
                            "; change a prefix")};
    }
    return {};
  }

  /// Fills the lists below.
  void compare() {
    std::map<std::string, const NamedTensor*> left = tensors_;
    for (const auto& parameter : parameters_) {
      left.erase(parameter.name);
      if (const auto found = tensors_.find(parameter.name); found != tensors_.end()) {
        compare(*found->second, parameter);
      } else if (const auto type = type_left_out(parameter.name); !type.empty()) {
        mismatched_.push_back(concat(parameter.name, " is ", type, " instead of F32"));
      } else {
        missing_.push_back(parameter.name);
      }
    }
    for (const auto& tensor : file_.tensors) {
      if (!left.contains(tensor.name)) continue;
      if (is_float(tensor.dtype))
        extra_.push_back(tensor.name);
      else
        left_out_.push_back(tensor.name);
    }
    for (const auto& [name, type] : file_.left_out)
      if (!name.ends_with(".num_batches_tracked") && !is_parameter(name))
        left_out_.push_back(concat(name, " (", type, ")"));
  }

  /// Whether the weights can be used.
  Status check(const std::string& path) const {
    if (partial_ && missing_.size() + mismatched_.size() < parameters_.size()) return {};
    const bool differ = !missing_.empty() || !mismatched_.empty() || (!partial_ && !extra_.empty());
    if (!differ) return {};
    const std::string lists = listed("missing", missing_) + listed("not in the model", extra_) +
                              listed("mismatched", mismatched_);
    const std::string prefix = common_prefix();
    if (partial_)
      return Error{concat("init_from: \"", path, "\" has no parameter of the model", lists,
                          prefix.empty() ? "; rename them with --init-map OLD=NEW" : "", prefix)};
    return Error{concat("init_from: \"", path, "\" does not match the model", lists,
                        prefix.empty() ? "; give --init the weights of the same model, named as in "
                                         "PyTorch, or --init-partial to train what is missing"
                                       : prefix)};
  }

  InitialWeights take() const {
    InitialWeights out;
    Names random;
    for (const auto& parameter : parameters_) {
      const auto found = tensors_.find(parameter.name);
      const bool usable = found != tensors_.end() && fits(*found->second, parameter);
      out.values.push_back(usable ? as_floats(*found->second) : Blob());
      if (!usable) random.push_back(parameter.name);
    }
    const auto note = [&](const std::string& text) { out.notes.push_back("--init: " + text); };
    Names narrow;
    for (const auto& tensor : file_.tensors)
      if (is_parameter(tensor.name) && is_float(tensor.dtype) && tensor.dtype != DType::f32)
        narrow.push_back(tensor.name);
    if (!narrow.empty()) note(concat("converted from 16 bits to F32: ", shortened(narrow)));
    Names wide;
    for (const auto& name : file_.from_f64)
      if (is_parameter(name)) wide.push_back(name);
    if (!wide.empty()) note(concat("rounded from F64 to F32: ", shortened(wide)));
    if (!left_out_.empty()) note(concat("left out: ", shortened(left_out_)));
    if (!extra_.empty()) note(concat("not in the model: ", shortened(extra_)));
    if (!random.empty())
      note(concat("random, because the file lacks them: ", join(random, ", "),
                  listed("of another shape or type", mismatched_)));
    return out;
  }

 private:
  static bool fits(const NamedTensor& tensor, const Parameter& parameter) {
    return tensor.shape == parameter.spec.shape && is_float(tensor.dtype);
  }
  void compare(const NamedTensor& tensor, const Parameter& parameter) {
    if (tensor.shape != parameter.spec.shape)
      mismatched_.push_back(
          concat(tensor.name, " is ", tensor.shape, " instead of ", parameter.spec.shape));
    else if (!is_float(tensor.dtype))
      mismatched_.push_back(concat(tensor.name, " is ", name_of(tensor.dtype), " instead of f32"));
  }
  bool is_parameter(const std::string& name) const {
    return std::ranges::any_of(parameters_, [&](const auto& one) { return one.name == name; });
  }
  /// The type of a tensor that was not read; empty without a tensor of this name.
  std::string type_left_out(const std::string& name) const {
    for (const auto& [other, type] : file_.left_out)
      if (other == name) return type;
    return "";
  }
  Names names_in_file() const {
    Names names;
    for (const auto& tensor : file_.tensors) names.push_back(tensor.name);
    return names;
  }
  /// The advice for a file in which all missing parameters have the same prefix.
  std::string common_prefix() const {
    for (const auto& tensor : file_.tensors) {
      if (missing_.empty() || !tensor.name.ends_with("." + missing_.front())) continue;
      const std::string prefix =
          tensor.name.substr(0, tensor.name.size() - missing_.front().size());
      if (std::ranges::all_of(missing_,
                              [&](const auto& name) { return tensors_.contains(prefix + name); }))
        return concat("; give --init-map ", prefix, "= to remove the prefix of its names");
    }
    return "";
  }

  Safetensors file_;
  const std::span<const Parameter> parameters_;
  const bool partial_;
  std::map<std::string, const NamedTensor*> tensors_;
  Names missing_, extra_, mismatched_, left_out_;
};

}  // namespace

Expected<InitialWeights> load_initial_weights(const std::string& path,
                                              std::span<const Parameter> parameters,
                                              const plan::FineTuning& tuning) {
  auto file = read_safetensors(path);
  if (!file) return Error{concat("init_from: ", file.error().text)};
  const auto map = parse_init_map(tuning.init_map);
  if (!map) return map.error();
  Matching matching(std::move(*file), parameters, tuning.partial);
  if (const Status renamed = matching.rename(*map); !renamed) return renamed.error();
  matching.compare();
  if (const Status fits = matching.check(path); !fits) return fits.error();
  return matching.take();
}

}  // namespace leeway
